//! An endpoint that speaks AWS: S3 with one bucket, DynamoDB, SQS and Events. It is moto's server,
//! which dies with the test process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::python::python_program;

mod dynamodb;
mod mirror;

pub use dynamodb::Dynamodb;

/// A server on a free port of 127.0.0.1. It keeps everything in its memory.
pub struct Moto {
    port: u16,
    running: Child,
    /// Goes after the process that logs into it.
    _folder: Folder,
}

impl Moto {
    /// The bucket that is there from the start.
    pub const BUCKET: &'static str = "windlass";

    /// The one server that the tests of this process share. It never stops before the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Moto> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A server for one test, which may make it refuse, or stop it by dropping it.
    pub fn start() -> Self {
        let python = python_program("python");
        let folder = Folder::create(Account::find());
        let started = on_free_port(|port| {
            let _ = fs::remove_file(folder.log());
            // As ourselves: the environment may lie where no other user can read.
            let mut command = Command::new(&python);
            command.args(["-c", SERVER, "-H", "127.0.0.1", "-p", &port.to_string()]);
            // Each test has a DynamoDB of its own by a region of its own.
            command.env("MOTO_ALLOW_NONEXISTENT_REGION", "true");
            command.current_dir(folder.path()).stdin(Stdio::null()).env("PYTHONUNBUFFERED", "1");
            launch(command, &folder.log(), Signal::SIGKILL, |_| is_up(&folder))
        });
        let (running, port) =
            started.unwrap_or_else(|log| panic!("moto's server does not start\n{log}"));
        let moto = Self { port, running, _folder: folder };
        let answer = moto.ask("PUT", &format!("/{}", Self::BUCKET), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "the bucket cannot be made: {answer}");
        moto
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The variables by which a client finds it, as AWS names them.
    pub fn environment(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.addr());
        let variables = [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "windlass"),
            ("AWS_SECRET_ACCESS_KEY", "windlass"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    /// A DynamoDB without tables, of one test alone.
    pub fn dynamodb(&self) -> Dynamodb {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let region = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Dynamodb::new(self.addr(), region)
    }

    /// Refuses every request from now on: nobody has the rights.
    pub fn refuse(&self) {
        self.rights("0");
    }

    /// Allows every request again.
    pub fn allow(&self) {
        self.rights("inf");
    }

    /// The whole answer to a request that is not signed, which it takes unless it refuses.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(self.addr(), method, path, body)
    }

    /// After how many requests rights are asked for.
    fn rights(&self, after: &str) {
        let answer = self.ask("POST", "/moto-api/reset-auth", after);
        assert!(answer.contains(" 200 "), "{answer}");
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

/// The server's own program.
const SERVER: &str = include_str!("moto/server.py");

/// The whole answer to a request that is not signed.
pub(crate) fn ask(addr: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("our own server listens");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
         Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("our own server reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("our own server answers");
    String::from_utf8_lossy(&answer).into_owned()
}

/// It says so when it listens. An answer at the port could be somebody else's.
fn is_up(folder: &Folder) -> bool {
    let log = fs::read_to_string(folder.log()).unwrap_or_default();
    log.contains("Running on http://")
}
