//! An AWS endpoint, served by moto: S3 with one bucket, DynamoDB, SQS and EventBridge. It stops when the test
//! process dies.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::account::Account;
use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::python::python_program;

mod dynamodb;
mod mirror;

pub use dynamodb::Dynamodb;
#[cfg(feature = "aws")]
pub(crate) use dynamodb::call_at;

/// A server on a free port of 127.0.0.1 that keeps its data in memory.
pub struct Moto {
    port: u16,
    running: Child,
    /// Dropped after the process, which logs into it.
    _folder: Folder,
}

impl Moto {
    /// The bucket that exists from the start.
    pub const BUCKET: &'static str = "windlass";

    /// The server that all tests of this process share. It runs until the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Moto> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A server for one test, which may make it refuse requests or stop it by dropping it.
    pub fn start() -> Self {
        let python = python_program("python");
        let folder = Folder::create(Account::find());
        let started = on_free_port(|port| {
            let _ = fs::remove_file(folder.log());
            // As the current user, because other users may not be able to read the Python environment.
            let mut command = Command::new(&python);
            command.args(["-c", SERVER, "-H", "127.0.0.1", "-p", &port.to_string()]);
            // Each test uses its own region, and so has its own DynamoDB.
            command.env("MOTO_ALLOW_NONEXISTENT_REGION", "true");
            // State machines call the services of the same server.
            command.env("MOTO_PORT", port.to_string());
            command.current_dir(folder.path()).stdin(Stdio::null()).env("PYTHONUNBUFFERED", "1");
            launch(command, &folder.log(), Signal::SIGKILL, |_| is_up(&folder))
        });
        let (running, port) = started.unwrap_or_else(|log| panic!("moto does not start\n{log}"));
        let moto = Self { port, running, _folder: folder };
        let answer = moto.ask("PUT", &format!("/{}", Self::BUCKET), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "failed to create the bucket: {answer}");
        moto
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The environment variables that point AWS clients to it.
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

    /// An empty DynamoDB for one test.
    pub fn dynamodb(&self) -> Dynamodb {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let region = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Dynamodb::new(self.addr(), region)
    }

    /// Creates a secret in Secrets Manager, and returns its ARN.
    pub fn secret(&self, text: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("secret-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let headers = "X-Amz-Target: secretsmanager.CreateSecret\r\n\
                       Content-Type: application/x-amz-json-1.1\r\n";
        let request = serde_json::json!({"Name": name, "SecretString": text});
        let service = ("secretsmanager", "us-east-1");
        let created = call_service(self.addr(), service, ("POST", "/"), headers, &request);
        created["ARN"].as_str().expect("a secret has an ARN").to_owned()
    }

    /// Refuses every request from now on: access denied.
    pub fn refuse(&self) {
        self.rights("0");
    }

    /// Accepts every request again.
    pub fn allow(&self) {
        self.rights("inf");
    }

    /// Sends an unsigned request and returns the whole answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(self.addr(), method, path, body)
    }

    /// Sets after how many requests moto checks permissions.
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

/// The server's source.
const SERVER: &str = include_str!("moto/server.py");

/// Sends an unsigned request and returns the whole answer.
pub(crate) fn ask(addr: SocketAddr, method: &str, path: &str, body: &str) -> String {
    ask_with(addr, method, path, "Content-Type: text/plain\r\n", body)
}

/// Sends a request with these header lines and returns the whole answer.
pub(crate) fn ask_with(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> String {
    let mut stream = TcpStream::connect(addr).expect("failed to connect to moto");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
         {headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .expect("failed to send a request to moto");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("failed to read moto's answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Sends a request to a service in a region, with further header lines, and returns the answer's JSON.
pub(crate) fn call_service(
    addr: SocketAddr,
    (service, region): (&str, &str),
    (method, path): (&str, &str),
    headers: &str,
    request: &Value,
) -> Value {
    let body = request.to_string();
    let headers = format!(
        "Authorization: AWS4-HMAC-SHA256 Credential=windlass/20260101/{region}/{service}/aws4_request\r\n\
         {headers}"
    );
    let answer = ask_with(addr, method, path, &headers, &body);
    let (head, json) = answer.split_once("\r\n\r\n").expect("an answer has a body");
    let status = head.split(' ').nth(1).unwrap_or_default();
    assert!(status.starts_with('2'), "{method} {path} {headers}{request}: {answer}");
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Reads the log, because another process could be listening on the port.
fn is_up(folder: &Folder) -> bool {
    let log = fs::read_to_string(folder.log()).unwrap_or_default();
    log.contains("Running on http://")
}
