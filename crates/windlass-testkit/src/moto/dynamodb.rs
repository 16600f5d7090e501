//! A DynamoDB of one test: calls to it, errors that it gives when told to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::ask;

/// A DynamoDB of one test: a region of the server, which knows no other's tables.
#[derive(Clone, Debug)]
pub struct Dynamodb {
    addr: SocketAddr,
    region: String,
    /// What makes its tables in SQLite.
    pub(super) schema: Arc<Mutex<Vec<String>>>,
}

impl Dynamodb {
    pub(super) fn new(addr: SocketAddr, region: String) -> Self {
        Self { addr, region, schema: Arc::default() }
    }

    /// Calls an operation as an application would.
    pub fn call(&self, operation: &str, request: Value) -> Value {
        let (addr, region) = (self.addr, &self.region);
        let body = request.to_string();
        let mut stream = TcpStream::connect(addr).expect("our own server listens");
        let length = body.len();
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
             X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=windlass/20260101/{region}/dynamodb/aws4_request\r\n\
             Content-Type: application/x-amz-json-1.0\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("our own server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("our own server answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a body");
        assert!(head.contains(" 200 "), "{operation} {request}: {answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// Its URL, with all that a client needs.
    pub fn url(&self) -> String {
        let Self { addr, region, .. } = self;
        format!("dynamodb://windlass:windlass@{region}?endpoint=http://{addr}")
    }

    /// Answers the next requests of an operation with an error of AWS instead of doing them.
    pub fn fail_before(&self, operation: &str, times: u32, error: &str) {
        self.fault(operation, times, error, "", false);
    }

    /// The same with fields of the error besides its name, as JSON: `"CancellationReasons":[…]`.
    pub fn fail_with(&self, operation: &str, times: u32, error: &str, fields: &str) {
        self.fault(operation, times, error, &format!(",{fields}"), false);
    }

    /// Does the next requests of an operation, and answers with an error all the same.
    pub fn fail_after(&self, operation: &str, times: u32, error: &str) {
        self.fault(operation, times, error, "", true);
    }

    /// How many requests of an operation came so far.
    pub fn requests(&self, operation: &str) -> u64 {
        let path = format!("/windlass/requests/{}/{operation}", self.region);
        let answer = ask(self.addr, "GET", &path, "");
        let body = answer.rsplit("\r\n").next().unwrap_or_default();
        body.parse().unwrap_or_else(|_| panic!("{answer}"))
    }

    fn fault(&self, operation: &str, times: u32, error: &str, fields: &str, after: bool) {
        let status = match error {
            "InternalServerError" => "500 Internal Server Error",
            _ => "400 Bad Request",
        };
        let region = &self.region;
        let body = format!(
            r#"{{"region":"{region}","operation":"{operation}","times":{times},"after":{after},
            "status":"{status}","body":{{"__type":"com.amazonaws.dynamodb.v20120810#{error}",
            "message":"by the test"{fields}}}}}"#
        );
        let answer = ask(self.addr, "POST", "/windlass/faults", &body);
        assert!(answer.contains(" 200 "), "{answer}");
    }
}
