//! A small server for a test: every request goes to one function.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The largest request that a test makes.
const MOST_BYTES: usize = 16 << 20;

/// A server, which ends with this handle.
pub(super) struct Served {
    pub(super) addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves on a free port.
pub(super) async fn serve<F, Fut>(answer: F) -> Served
where
    F: Fn(Parts, Bytes) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let addr = listener.local_addr().expect("a bound socket has an address");
    let router = Router::new().fallback(move |request: Request| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, MOST_BYTES).await.expect("a request has a body");
            answer(parts, body).await
        }
    });
    let task = tokio::spawn(async move {
        axum::serve(listener, router).await.expect("a bound socket can be served");
    });
    Served { addr, task }
}

/// The operation that a call of AWS names: `AmazonSQS.SendMessageBatch`.
pub(super) fn target(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    target.unwrap_or_default().to_owned()
}
