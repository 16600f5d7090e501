//! An ephemeral PostgreSQL server that dies with the test process.

mod binaries;
mod cluster;
mod database;
mod replica;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use binaries::Binaries;
pub(crate) use cluster::USER;
pub use database::Database;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether commits reach the disk. Off is faster and loses nothing unless the machine crashes.
    pub fsync: bool,
    /// More settings, as `postgres -c name=value` takes them.
    pub settings: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { fsync: true, settings: Vec::new() }
    }
}

/// A PostgreSQL cluster of its own, on a free port of 127.0.0.1, in a folder that goes away.
pub struct PostgresServer {
    binaries: Binaries,
    folder: Folder,
    options: Options,
    port: u16,
    running: Mutex<Option<Child>>,
    databases: AtomicU32,
}

impl PostgresServer {
    /// The one server that the tests of this process share. It never stops before the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Options { fsync: false, ..Options::default() }))
    }

    /// A server for one test, which may stop and restart it. It is gone when dropped.
    pub fn start(options: Options) -> Self {
        let binaries = Binaries::find();
        let folder = Folder::create(binaries.account);
        cluster::create(&binaries, &folder);
        Self::launch(binaries, folder, options)
    }

    fn launch(binaries: Binaries, folder: Folder, options: Options) -> Self {
        match on_free_port(|port| start(&binaries, &folder, &options, port)) {
            Ok((child, port)) => {
                let running = Mutex::new(Some(child));
                let databases = AtomicU32::new(0);
                Self { binaries, folder, options, port, running, databases }
            }
            Err(log) => panic!(
                "PostgreSQL does not start. If its files are damaged, remove {}.\n{log}",
                cluster::template(&binaries).display()
            ),
        }
    }

    /// Where the server listens.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.addr())
    }

    /// Creates an empty database with a name of its own.
    pub async fn database(&self) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        let maintenance = Database::new("postgres", self.url("postgres"));
        maintenance.run(&format!("CREATE DATABASE {name}")).await;
        Database::new(&name, self.url(&name))
    }

    /// Stops the server in order, disconnecting its clients; `start_again` undoes it.
    pub fn stop(&self) {
        self.end(Signal::SIGINT);
    }

    /// Stops the server as a crash would: no checkpoint, no goodbye; `start_again` recovers it.
    pub fn stop_immediate(&self) {
        self.end(Signal::SIGQUIT);
    }

    /// Starts a stopped server on the same port and data.
    pub fn start_again(&self) {
        let mut running = self.running.lock().unwrap();
        assert!(running.is_none(), "the server runs already");
        match start(&self.binaries, &self.folder, &self.options, self.port) {
            Ok(child) => *running = Some(child),
            Err(log) => panic!("PostgreSQL does not start again on port {}\n{log}", self.port),
        }
    }

    /// A crash and the recovery from it.
    pub fn restart_immediate(&self) {
        self.stop_immediate();
        self.start_again();
    }

    fn end(&self, signal: Signal) {
        let child = self.running.lock().unwrap().take();
        if let Some(mut child) = child {
            kill(pid(&child), signal).expect("our own child takes signals");
            child.wait().expect("our own child can be waited for");
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Starts `postgres` and returns when it takes connections, or with its log when it does not.
fn start(
    binaries: &Binaries,
    folder: &Folder,
    options: &Options,
    port: u16,
) -> Result<Child, String> {
    let mut command = binaries.command("postgres", folder.path());
    command.arg("-D").arg(folder.data());
    for (name, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port.to_string()),
        ("unix_socket_directories", &folder.path().display().to_string()),
        ("fsync", if options.fsync { "on" } else { "off" }),
        ("max_connections", "300"),
        ("shared_buffers", "128MB"),
    ] {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for (name, value) in &options.settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    launch(command, &folder.log(), Signal::SIGQUIT, |child| takes_connections(folder, child))
}

/// Reads the lock file as `pg_ctl` does: the first line is the process, the eighth its status.
fn takes_connections(folder: &Folder, child: &Child) -> bool {
    let lock = fs::read_to_string(folder.data().join("postmaster.pid")).unwrap_or_default();
    let mut lines = lock.lines().map(str::trim);
    lines.next() == Some(&child.id().to_string()) && lines.nth(6) == Some("ready")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a pid fits"))
}
