//! A DynamoDB for one test, with requests to it and injected errors.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{ask, call_service};

/// A DynamoDB for one test: a region of the server, with its own tables.
#[derive(Clone, Debug)]
pub struct Dynamodb {
    addr: SocketAddr,
    region: String,
    /// The statements that create its tables in SQLite.
    pub(super) schema: Arc<Mutex<Vec<String>>>,
}

/// Sends a request of DynamoDB or its streams, and returns the answer.
pub(crate) fn call_at(addr: SocketAddr, region: &str, target: &str, request: &Value) -> Value {
    let headers = format!("X-Amz-Target: {target}\r\nContent-Type: application/x-amz-json-1.0\r\n");
    call_service(addr, ("dynamodb", region), ("POST", "/"), &headers, request)
}

impl Dynamodb {
    pub(crate) fn new(addr: SocketAddr, region: String) -> Self {
        Self { addr, region, schema: Arc::default() }
    }

    /// Sends a request as an application would.
    pub fn call(&self, operation: &str, request: Value) -> Value {
        call_at(self.addr, &self.region, &format!("DynamoDB_20120810.{operation}"), &request)
    }

    /// The URL, with the credentials and the endpoint.
    pub fn url(&self) -> String {
        let Self { addr, region, .. } = self;
        format!("dynamodb://windlass:windlass@{region}?endpoint=http://{addr}")
    }

    /// Answers the next `times` requests of an operation with an AWS error, without executing them.
    pub fn fail_before(&self, operation: &str, times: u32, error: &str) {
        self.fault(operation, times, error, "", false);
    }

    /// The same with extra fields of the error as JSON, such as `"CancellationReasons":[…]`.
    pub fn fail_with(&self, operation: &str, times: u32, error: &str, fields: &str) {
        self.fault(operation, times, error, &format!(",{fields}"), false);
    }

    /// Executes the next `times` requests of an operation and then answers with an error.
    pub fn fail_after(&self, operation: &str, times: u32, error: &str) {
        self.fault(operation, times, error, "", true);
    }

    /// The number of requests of an operation so far.
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
