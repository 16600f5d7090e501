//! A PgBouncer in transaction mode in front of an ephemeral PostgreSQL. It stops when the test process dies.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Mutex;

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::postgres::{Database, PostgresServer, USER};

/// A pooler on a free port of 127.0.0.1. A client has a server connection only during a transaction. The next
/// client gets the connection with the settings, prepared statements and channels that are left on it, because
/// PgBouncer resets connections only in session mode.
pub struct PgBouncer {
    port: u16,
    running: Mutex<Child>,
    /// Dropped after the process that runs in it.
    folder: Folder,
}

impl PgBouncer {
    /// The number of connections to a database that all clients share.
    pub const POOL_SIZE: usize = 5;

    /// Starts a pooler for all databases of a server.
    pub fn start(server: &PostgresServer) -> Self {
        let folder = Folder::create(Account::find());
        let started = on_free_port(|port| {
            fs::write(settings(&folder), ini(server, port)).expect("failed to write the settings");
            start(&folder)
        });
        match started {
            Ok((running, port)) => Self { port, running: Mutex::new(running), folder },
            Err(log) => panic!("PgBouncer does not start\n{log}"),
        }
    }

    /// Kills the pooler and starts it again on the same port.
    pub fn restart(&self) {
        let mut running = self.running.lock().unwrap();
        end(&mut running);
        *running = start(&self.folder).unwrap_or_else(|log| panic!("failed to restart it\n{log}"));
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database through the pooler.
    pub fn url(&self, database: &Database) -> String {
        format!("postgres://{USER}@{}/{}", self.addr(), database.name())
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        end(self.running.get_mut().unwrap());
    }
}

fn settings(folder: &Folder) -> PathBuf {
    folder.path().join("pgbouncer.ini")
}

/// Starts the process with the settings in its folder.
fn start(folder: &Folder) -> Result<Child, String> {
    let _ = fs::remove_file(folder.log());
    let mut command = Account::find().command(&find(), folder.path());
    command.arg(settings(folder));
    // SIGKILL: it has no state that an orderly shutdown would save.
    launch(command, &folder.log(), Signal::SIGKILL, |_| is_up(folder))
}

fn end(running: &mut Child) {
    let _ = running.kill();
    let _ = running.wait();
}

fn ini(server: &PostgresServer, port: u16) -> String {
    let (host, server_port) = (server.addr().ip(), server.addr().port());
    format!(
        "[databases]\n\
         * = host={host} port={server_port} user={USER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = {}\n\
         max_client_conn = 200\n",
        PgBouncer::POOL_SIZE
    )
}

/// Reads the log, because another process could be listening on the port.
fn is_up(folder: &Folder) -> bool {
    let log = fs::read_to_string(folder.log()).unwrap_or_default();
    log.contains("process up: PgBouncer")
}

/// Searches PATH, then /usr/sbin, which Debian puts only on root's PATH.
fn find() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
        .expect("PgBouncer is not installed (Debian package: pgbouncer)")
}
