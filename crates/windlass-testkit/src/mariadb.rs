//! An ephemeral MariaDB or MySQL server that stops when the test process dies.

mod binaries;
mod database;
mod replica;

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::template::fill;
use binaries::{Binaries, Product};
pub use database::MariaDatabase;

/// The login of tests, with all privileges. The password contains characters that a URL must encode.
const USER: &str = "windlass";
const PASSWORD: &str = "wind@lass";

/// Words of MariaDB with those of MySQL.
const MYSQL_WORDS: &[(&str, &str)] = &[
    (" UUID", " CHAR(36)"),
    (" uuid", " char(36)"),
    (" INET6", " VARCHAR(45)"),
    (" IGNORED", " INVISIBLE"),
    ("utf8mb4_nopad_bin", "utf8mb4_0900_bin"),
    // MySQL keeps the values of a document, not its text.
    ("'{\"a\": 1}'", "'{\"a\": 1.0}'"),
];

/// The unit of processor times in /proc, the same on all Linux systems.
const TICKS_PER_SECOND: u64 = 100;

/// A MariaDB server on a free port of 127.0.0.1, in a temporary folder. Commits reach the operating system but are
/// not flushed to disk: data is lost only if the machine crashes. `WINDLASS_MYSQL_BIN` names the folder of another
/// server, which may also be MySQL.
pub struct MariaServer {
    binaries: Binaries,
    folder: Folder,
    port: u16,
    running: Mutex<Option<Child>>,
    /// Extra command-line options of this server.
    more: Vec<String>,
    databases: AtomicU32,
}

impl MariaServer {
    /// The server that all tests of this process share. It runs until the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<MariaServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A server for one test, which may stop and restart it. Dropping it removes it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more options, which override the default ones.
    pub fn start_with(more: &[&str]) -> Self {
        Self::launch(more, "")
    }

    /// The same with statements that run at each start, one per line.
    fn launch(more: &[&str], statements: &str) -> Self {
        let more: Vec<String> = more.iter().map(|option| (*option).to_owned()).collect();
        let binaries = Binaries::find();
        let folder = Folder::create(binaries.account);
        let name = format!("windlass-testkit-{}-{}", binaries.version(), binaries.account.uid);
        let template = env::temp_dir().join(name);
        fill(&template, binaries.account, &folder, |fresh| binaries.install(folder.path(), fresh));
        let start_sql = format!(
            "CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n\
             {statements}"
        );
        fs::write(folder.path().join("start.sql"), start_sql).expect("failed to write a file");
        match on_free_port(|port| start(&binaries, &folder, port, &more)) {
            Ok((child, port)) => {
                let running = Mutex::new(Some(child));
                Self { binaries, folder, port, running, more, databases: AtomicU32::new(0) }
            }
            Err(log) => panic!(
                "the server does not start. If its template is damaged, remove {}.\n{log}",
                template.display()
            ),
        }
    }

    /// Whether the servers that tests start are MySQL. Starts none.
    pub fn uses_mysql() -> bool {
        Binaries::find().product == Product::Mysql
    }

    /// Whether it is MySQL.
    pub fn is_mysql(&self) -> bool {
        self.binaries.product == Product::Mysql
    }

    /// A statement in the words of this server. MySQL lacks some types of MariaDB and names some features differently.
    pub fn spell(&self, sql: &str) -> String {
        let words = if self.is_mysql() { MYSQL_WORDS } else { &[] };
        words.iter().fold(sql.to_owned(), |sql, (mariadb, mysql)| sql.replace(mariadb, mysql))
    }

    /// The address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        let password = PASSWORD.replace('@', "%40");
        format!("mysql://{USER}:{password}@{}/{database}", self.addr())
    }

    /// Creates an empty database with a unique name.
    pub async fn database(&self) -> MariaDatabase {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        let maintenance = MariaDatabase::new("mysql", self.url("mysql"));
        maintenance.run(&format!("CREATE DATABASE {name}")).await;
        MariaDatabase::new(&name, self.url(&name))
    }

    /// The processor time that the server has used since its start, on all cores.
    pub fn cpu_time(&self) -> Duration {
        let running = self.running.lock().unwrap();
        let id = running.as_ref().expect("the server is not running").id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("the process has ended");
        // The name of the program, in parentheses, may contain spaces. User and system time are fields 14 and 15.
        let (_, fields) = stat.rsplit_once(')').expect("malformed process status");
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// Kills the server with SIGKILL, as a crash would. `start_again` recovers it.
    pub fn stop_immediate(&self) {
        let child = self.running.lock().unwrap().take();
        if let Some(mut child) = child {
            let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id fits into i32"));
            kill(pid, Signal::SIGKILL).expect("failed to signal a child process");
            child.wait().expect("failed to wait for a child process");
        }
    }

    /// Starts a stopped server again on the same port and data.
    pub fn start_again(&self) {
        let mut running = self.running.lock().unwrap();
        assert!(running.is_none(), "the server is already running");
        match start(&self.binaries, &self.folder, self.port, &self.more) {
            Ok(child) => *running = Some(child),
            Err(log) => panic!("failed to restart the server on port {}\n{log}", self.port),
        }
    }
}

impl Drop for MariaServer {
    fn drop(&mut self) {
        self.stop_immediate();
    }
}

/// Starts the server. Returns when it accepts connections, or returns its log if it does not.
fn start(
    binaries: &Binaries,
    folder: &Folder,
    port: u16,
    more: &[String],
) -> Result<Child, String> {
    let mut command = binaries.server(folder.path());
    let path = folder.path().display();
    command.arg("--no-defaults").args([
        format!("--datadir={}", folder.data().display()),
        format!("--tmpdir={path}"),
        format!("--socket={path}/server.sock"),
        format!("--pid-file={path}/server.pid"),
        format!("--init-file={path}/start.sql"),
        format!("--port={port}"),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--max-connections=300",
        "--character-set-server=utf8mb4",
        // Old servers default to this lenient mode, so Windlass must set the stricter modes that it needs.
        "--sql-mode=NO_ENGINE_SUBSTITUTION",
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=2",
    ]);
    let has_tls = more.iter().any(|option| option.starts_with("--ssl"));
    command.args(binaries.options(has_tls)).args(more);
    launch(command, &folder.log(), Signal::SIGKILL, |_| {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    })
}
