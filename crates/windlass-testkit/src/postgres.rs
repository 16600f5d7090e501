//! An ephemeral PostgreSQL server that stops when the test process dies.

mod binaries;
mod cluster;
mod database;
mod replica;
mod wal_writer;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
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
pub use wal_writer::StoppedWalWriter;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether commits are flushed to disk. Without it, data is lost only if the machine crashes.
    pub fsync: bool,
    /// More settings, passed as `postgres -c name=value`.
    pub settings: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { fsync: true, settings: Vec::new() }
    }
}

/// A PostgreSQL cluster on a free port of 127.0.0.1, in a temporary folder.
pub struct PostgresServer {
    binaries: Binaries,
    folder: Folder,
    options: Options,
    port: u16,
    running: Mutex<Option<Child>>,
    databases: AtomicU32,
}

impl PostgresServer {
    /// The server that all tests of this process share. It runs until the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(Options { fsync: false, ..Options::default() }))
    }

    /// A server that flushes its log only when a commit waits for the flush.
    pub fn start_lazy() -> Self {
        let settings = [
            ("synchronous_commit", "off"),
            ("wal_writer_delay", "10s"),
            ("wal_writer_flush_after", "1GB"),
            ("autovacuum", "off"),
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("checkpoint_timeout", "1h"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self::start(Options { fsync: false, settings })
    }

    /// A server for one test, which may stop and restart it. Dropping it removes it.
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
                "PostgreSQL does not start. If its template is damaged, remove {}.\n{log}",
                cluster::template(&binaries).display()
            ),
        }
    }

    /// The address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.addr())
    }

    /// Creates an empty database with a unique name.
    pub async fn database(&self) -> Database {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        let maintenance = Database::new("postgres", self.url("postgres"));
        maintenance.run(&format!("CREATE DATABASE {name}")).await;
        Database::new(&name, self.url(&name))
    }

    /// The file that the server writes its log to.
    pub fn log_file(&self) -> PathBuf {
        self.folder.log()
    }

    /// Stops the server in order and disconnects its clients. `start_again` starts it again.
    pub fn stop(&self) {
        self.end(Signal::SIGINT);
    }

    /// Stops the server without a checkpoint, as a crash would. `start_again` recovers it.
    pub fn stop_immediate(&self) {
        self.end(Signal::SIGQUIT);
    }

    /// Starts a stopped server again on the same port and data.
    pub fn start_again(&self) {
        let mut running = self.running.lock().unwrap();
        assert!(running.is_none(), "the server is already running");
        match start(&self.binaries, &self.folder, &self.options, self.port) {
            Ok(child) => *running = Some(child),
            Err(log) => panic!("failed to restart PostgreSQL on port {}\n{log}", self.port),
        }
    }

    /// Stops the server as a crash would, and starts it again.
    pub fn restart_immediate(&self) {
        self.stop_immediate();
        self.start_again();
    }

    fn end(&self, signal: Signal) {
        let child = self.running.lock().unwrap().take();
        if let Some(mut child) = child {
            kill(pid(&child), signal).expect("failed to signal a child process");
            child.wait().expect("failed to wait for a child process");
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Starts `postgres`. Returns when it accepts connections, or returns its log if it does not.
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

/// Reads the lock file as `pg_ctl` does: the first line is the process id, the eighth the status.
fn takes_connections(folder: &Folder, child: &Child) -> bool {
    let lock = fs::read_to_string(folder.data().join("postmaster.pid")).unwrap_or_default();
    let mut lines = lock.lines().map(str::trim);
    lines.next() == Some(&child.id().to_string()) && lines.nth(6) == Some("ready")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id fits into i32"))
}
