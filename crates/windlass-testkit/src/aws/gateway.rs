//! A gateway in front of moto that counts requests and runs a test's action at a chosen request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::request::Parts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::{Served, serve, target};

/// A gateway.
pub struct Gateway {
    served: Served,
    state: Arc<State>,
}

/// When the action of a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the request is forwarded.
    Before,
    /// After the service has answered, before the client receives the answer.
    After,
}

type Act = Box<dyn FnOnce() + Send>;

struct State {
    moto: SocketAddr,
    counts: Mutex<BTreeMap<String, usize>>,
    denied: Mutex<Vec<String>>,
    /// Operation, moment, number of requests to let pass first, and the action.
    acts: Mutex<Vec<(String, Moment, usize, Act)>>,
}

impl Gateway {
    /// A gateway to moto.
    pub async fn start(moto: SocketAddr) -> Gateway {
        let state = Arc::new(State {
            moto,
            counts: Mutex::default(),
            denied: Mutex::default(),
            acts: Mutex::default(),
        });
        let shared = state.clone();
        let served = serve(move |parts, body| {
            let state = shared.clone();
            async move { state.pass(parts, body).await }
        })
        .await;
        Gateway { served, state }
    }

    /// Its URL, for `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.served.addr)
    }

    /// The number of requests of an operation, such as `UpdateItem`.
    pub fn count(&self, operation: &str) -> usize {
        let counts = self.state.counts.lock().expect("the lock is poisoned");
        counts.get(operation).copied().unwrap_or_default()
    }

    /// The number of requests per operation.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        self.state.counts.lock().expect("the lock is poisoned").clone()
    }

    /// The answers since the last call that denied access, each after its request's method and path.
    pub fn take_denied(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.denied.lock().expect("the lock is poisoned"))
    }

    /// Runs an action at one request of an operation, after letting `after` requests pass.
    pub fn at(
        &self,
        operation: &str,
        moment: Moment,
        after: usize,
        act: impl FnOnce() + Send + 'static,
    ) {
        let mut acts = self.state.acts.lock().expect("the lock is poisoned");
        acts.push((operation.to_owned(), moment, after, Box::new(act)));
    }
}

impl State {
    async fn pass(&self, parts: Parts, body: Bytes) -> Response<Body> {
        let target = target(&parts.headers);
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        *self.counts.lock().expect("the lock is poisoned").entry(operation.clone()).or_default() +=
            1;
        self.act(&operation, Moment::Before);
        let answer = self.forward(&parts, &body).await.expect("moto answers");
        self.act(&operation, Moment::After);
        answer
    }

    fn act(&self, operation: &str, moment: Moment) {
        let mut acts = self.acts.lock().expect("the lock is poisoned");
        let mut due = None;
        for (place, (name, when, left, _)) in acts.iter_mut().enumerate() {
            if name == operation && *when == moment {
                match left {
                    0 => due = Some(place),
                    _ => *left -= 1,
                }
            }
        }
        if let Some(place) = due {
            (acts.remove(place).3)();
        }
    }

    /// Uses one connection per request; moto closes its connections anyway.
    async fn forward(&self, parts: &Parts, body: &[u8]) -> std::io::Result<Response<Body>> {
        let mut request = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri);
        for (name, value) in &parts.headers {
            let value = value.to_str().expect("AWS headers are ASCII");
            if !["connection", "content-length"].contains(&name.as_str()) {
                request.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        request.push_str(&format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len()));
        let mut stream = TcpStream::connect(self.moto).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end =
            answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a complete answer");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let body = answer.split_off(end + 4);
        let text = String::from_utf8_lossy(&body);
        if !status.starts_with('2') && text.contains("AccessDenied") {
            let denied = format!("{} {} {text}", parts.method, parts.uri);
            self.denied.lock().expect("the lock is poisoned").push(denied);
        }
        let mut response = Response::builder().status(status);
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let ours = ["connection", "content-length", "transfer-encoding"];
            if !ours.contains(&name.to_ascii_lowercase().as_str()) {
                response = response.header(name, value);
            }
        }
        Ok(response.body(Body::from(body)).expect("failed to build a response"))
    }
}
