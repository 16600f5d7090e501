//! Lambda's Runtime API, for one execution environment: the next invocation, and its answer.

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

/// What a function answered: its response, or its error.
pub(super) type Answer = Result<Json, Json>;

/// The API that one process of a function talks to.
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

    /// Where it listens, as `AWS_LAMBDA_RUNTIME_API` says it.
    pub(super) fn addr(&self) -> String {
        self.served.addr.to_string()
    }

    /// Invokes the function. The answer is dropped unanswered where its process dies.
    pub(super) async fn invoke(&self, event: Json, time: Duration) -> oneshot::Receiver<Answer> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let (answer, answered) = oneshot::channel();
        let id = Uuid::now_v7().to_string();
        let deadline = (now + time).as_millis();
        let invocation = Invocation { id, event, deadline, answer };
        assert!(self.next.send(invocation).await.is_ok(), "the runtime is gone");
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
                // The test has ended, and its processes are about to.
                let Some(invocation) = invocation else { return status(StatusCode::GONE) };
                let response = Response::builder()
                    .header("lambda-runtime-aws-request-id", &invocation.id)
                    .header("lambda-runtime-deadline-ms", invocation.deadline.to_string())
                    .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:::function:test")
                    .header("lambda-runtime-trace-id", "Root=1-0-0");
                let answer = (invocation.id, invocation.answer);
                *self.answer.lock().expect("nobody panicked") = Some(answer);
                response.body(invocation.event.to_string().into()).expect("a plain response")
            }
            (&Method::POST, ["invocation", id, how @ ("response" | "error")]) => {
                let waiting = self.answer.lock().expect("nobody panicked").take();
                let (wanted, answer) = waiting.expect("an answer belongs to an invocation");
                assert_eq!(wanted, *id, "an answer names its invocation");
                let json = serde_json::from_slice(&body).unwrap_or(Json::Null);
                // Who asked may have given up.
                let _ = answer.send(if *how == "response" { Ok(json) } else { Err(json) });
                status(StatusCode::ACCEPTED)
            }
            (&Method::POST, ["init", "error"]) => {
                panic!("the function cannot begin: {}", String::from_utf8_lossy(&body))
            }
            _ => status(StatusCode::NOT_FOUND),
        }
    }
}

fn status(status: StatusCode) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body("{\"status\":\"OK\"}".into()).expect("a plain response")
}
