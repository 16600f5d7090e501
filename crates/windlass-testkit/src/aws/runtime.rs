//! The Lambda runtime API for one process of a function: the next invocation and its answer.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use serde_json::Value as Json;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use uuid::Uuid;

use super::http::{Served, serve};

const PATH: &str = "/2018-06-01/runtime";

/// The response or the error of a function.
pub(super) type Answer = Result<Json, Json>;

/// The API that one process of a function polls.
pub(super) struct Runtime {
    served: Served,
    next: mpsc::Sender<Invocation>,
}

struct State {
    waiting: AsyncMutex<mpsc::Receiver<Invocation>>,
    answer: Mutex<Option<(String, oneshot::Sender<Answer>)>>,
}

struct Invocation {
    id: String,
    event: Json,
    deadline: u128,
    answer: oneshot::Sender<Answer>,
}

impl Runtime {
    pub(super) async fn serve() -> Runtime {
        let (next, waiting) = mpsc::channel(1);
        let state = Arc::new(State { waiting: AsyncMutex::new(waiting), answer: Mutex::default() });
        let served = serve(move |parts, body| {
            let state = state.clone();
            async move { state.call(parts, body).await }
        })
        .await;
        Runtime { served, next }
    }

    /// The address for `AWS_LAMBDA_RUNTIME_API`.
    pub(super) fn addr(&self) -> String {
        self.served.addr.to_string()
    }

    /// Invokes the function. The returned channel closes without an answer if the process exits.
    pub(super) async fn invoke(&self, event: Json, time: Duration) -> oneshot::Receiver<Answer> {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("the clock is after 1970");
        let (answer, answered) = oneshot::channel();
        let id = Uuid::now_v7().to_string();
        let deadline = (now + time).as_millis();
        let invocation = Invocation { id, event, deadline, answer };
        assert!(self.next.send(invocation).await.is_ok(), "the runtime API has stopped");
        answered
    }
}

impl State {
    async fn call(&self, parts: Parts, body: Bytes) -> Response<Body> {
        let path = parts.uri.path().strip_prefix(PATH).unwrap_or_default();
        let words: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (&parts.method, words.as_slice()) {
            (&Method::GET, ["invocation", "next"]) => {
                let invocation = self.waiting.lock().await.recv().await;
                // The test has ended; its processes end next.
                let Some(invocation) = invocation else { return status(StatusCode::GONE) };
                let response = Response::builder()
                    .header("lambda-runtime-aws-request-id", &invocation.id)
                    .header("lambda-runtime-deadline-ms", invocation.deadline.to_string())
                    .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:::function:test")
                    .header("lambda-runtime-trace-id", "Root=1-0-0");
                let answer = (invocation.id, invocation.answer);
                *self.answer.lock().expect("the lock is poisoned") = Some(answer);
                response
                    .body(invocation.event.to_string().into())
                    .expect("failed to build a response")
            }
            (&Method::POST, ["invocation", id, how @ ("response" | "error")]) => {
                let waiting = self.answer.lock().expect("the lock is poisoned").take();
                let (wanted, answer) =
                    waiting.expect("the function answered without an invocation");
                assert_eq!(wanted, *id, "the function answered another invocation");
                let json = serde_json::from_slice(&body).unwrap_or(Json::Null);
                // The caller may have given up.
                let _ = answer.send(if *how == "response" { Ok(json) } else { Err(json) });
                status(StatusCode::ACCEPTED)
            }
            (&Method::POST, ["init", "error"]) => {
                panic!("the function failed to start: {}", String::from_utf8_lossy(&body))
            }
            _ => status(StatusCode::NOT_FOUND),
        }
    }
}

fn status(status: StatusCode) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body("{\"status\":\"OK\"}".into()).expect("failed to build a response")
}
