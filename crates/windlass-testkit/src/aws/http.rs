//! A small HTTP server for tests: one function answers every request.

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
const MAX_BYTES: usize = 16 << 20;

/// A server that stops when this handle is dropped.
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
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("failed to bind a port");
    let addr = listener.local_addr().expect("failed to read the port");
    let router = Router::new().fallback(move |request: Request| {
        let answer = answer.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body =
                axum::body::to_bytes(body, MAX_BYTES).await.expect("failed to read a request");
            answer(parts, body).await
        }
    });
    let task = tokio::spawn(async move {
        axum::serve(listener, router).await.expect("failed to serve");
    });
    Served { addr, task }
}

/// The operation of an AWS request, such as `AmazonSQS.SendMessageBatch`.
pub(super) fn target(headers: &HeaderMap) -> String {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    target.unwrap_or_default().to_owned()
}
