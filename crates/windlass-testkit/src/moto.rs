//! An endpoint that speaks AWS: S3 with one bucket, DynamoDB, SQS and Events. It is moto's server,
//! which dies with the test process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::Signal;

use crate::account::Account;
use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::python::python_program;

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
        let program = python_program("moto_server");
        let folder = Folder::create(Account::find());
        let started = on_free_port(|port| {
            let _ = fs::remove_file(folder.log());
            // As ourselves: the environment may lie where no other user can read.
            let mut command = Command::new(&program);
            command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
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

    /// The URL of its DynamoDB, with all that a client needs.
    pub fn dynamodb(&self) -> String {
        self.dynamodb_at(self.addr())
    }

    /// The same URL by way of somebody else who listens.
    pub fn dynamodb_at(&self, addr: SocketAddr) -> String {
        format!("dynamodb://windlass:windlass@us-east-1?endpoint=http://{addr}")
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
        let mut stream = TcpStream::connect(self.addr()).expect("our own server listens");
        let (host, length) = (self.addr(), body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("our own server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("our own server answers");
        String::from_utf8_lossy(&answer).into_owned()
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

/// It says so when it listens. An answer at the port could be somebody else's.
fn is_up(folder: &Folder) -> bool {
    let log = fs::read_to_string(folder.log()).unwrap_or_default();
    log.contains("Running on http://")
}
