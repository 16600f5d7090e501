//! A webhook receiver that records requests, and can be made unresponsive.

use crate::api::stub_service::read_request;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Posted {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver that stops when it is dropped.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    listening: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    silent: AtomicBool,
    answer: Mutex<Option<&'static str>>,
    posts: Mutex<Vec<Posted>>,
}

impl Receiver {
    /// Starts a receiver on a free port.
    pub(crate) async fn start() -> Receiver {
        Receiver::start_on(0).await
    }

    pub(crate) async fn start_on(port: u16) -> Receiver {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared: Arc<Shared> = Arc::default();
        let serving = shared.clone();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone()));
            }
        });
        Receiver { port, shared, listening }
    }

    /// Reads requests from now on, but does not respond.
    pub(crate) fn stop_responding(&self) {
        self.shared.silent.store(true, Ordering::SeqCst);
    }

    /// Responds with this status line and these headers from now on.
    pub(crate) fn respond_with(&self, answer: &'static str) {
        *self.shared.answer.lock().unwrap() = Some(answer);
    }

    /// All requests so far.
    pub(crate) fn posts(&self) -> Vec<Posted> {
        self.shared.posts.lock().unwrap().clone()
    }

    /// The sorted kinds of the received alerts; repeated ids count once.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kinds_where(|alert| alert["clearedAt"].is_null())
    }

    /// The sorted kinds of the received ends of alerts; repeated ids count once.
    pub(crate) fn cleared(&self) -> Vec<String> {
        self.kinds_where(|alert| !alert["clearedAt"].is_null())
    }

    fn kinds_where(&self, counts: impl Fn(&Json) -> bool) -> Vec<String> {
        let posts = self.posts();
        let all = posts.iter().map(|post| (post.headers["webhook-id"].clone(), post.json()));
        let by_id: BTreeMap<_, _> = all.filter(|(_, alert)| counts(alert)).collect();
        let mut kinds: Vec<_> =
            by_id.values().map(|alert| crate::common::text(&alert["kind"])).collect();
        kinds.sort();
        kinds
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some((lines, body)) = read_request(&mut stream).await else { return };
    let headers: BTreeMap<_, _> = lines
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    shared.posts.lock().unwrap().push(Posted { headers, body });
    if shared.silent.load(Ordering::SeqCst) {
        // Until the sender gives up.
        let _ = stream.read_u8().await;
        return;
    }
    let answer = shared.answer.lock().unwrap().unwrap_or("204 No Content");
    let head = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).await;
}
