//! An event bus with one rule, whose target is a function.
//!
//! moto stores events and invokes nothing, so this server takes `PutEvents`, validates each entry as EventBridge
//! does, and invokes the function. Like an asynchronous invocation on Lambda, it tries a failed invocation two
//! more times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::request::Parts;
use serde_json::{Value as Json, json};
use tokio::sync::Notify;
use uuid::Uuid;

use super::Function;
use super::http::{Served, serve, target};

/// An event bus.
pub struct EventBus {
    served: Served,
    state: Arc<State>,
}

struct State {
    function: Function,
    source: String,
    detail_type: String,
    details: Mutex<Vec<Json>>,
    others: Mutex<Vec<Json>>,
    entries: AtomicUsize,
    refuse_every: AtomicUsize,
    repeat_every: AtomicUsize,
    under_way: AtomicUsize,
    ended: Notify,
}

/// EventBridge's limit for the entries of one request.
const MAX_BYTES: usize = 256 << 10;

impl EventBus {
    /// A bus whose rule matches this source and type, and invokes this function.
    pub async fn start(function: Function, source: &str, detail_type: &str) -> EventBus {
        let state = Arc::new(State {
            function,
            source: source.to_owned(),
            detail_type: detail_type.to_owned(),
            details: Mutex::default(),
            others: Mutex::default(),
            entries: AtomicUsize::default(),
            refuse_every: AtomicUsize::default(),
            repeat_every: AtomicUsize::default(),
            under_way: AtomicUsize::default(),
            ended: Notify::default(),
        });
        let shared = state.clone();
        let served = serve(move |parts, body| {
            let state = shared.clone();
            async move { state.put(parts, body) }
        })
        .await;
        EventBus { served, state }
    }

    /// The URL for `AWS_ENDPOINT_URL_EVENTBRIDGE`.
    pub fn url(&self) -> String {
        format!("http://{}", self.served.addr)
    }

    /// Refuses every n-th entry with a throttling error.
    pub fn refuse_every(&self, entries: usize) {
        self.state.refuse_every.store(entries, Ordering::Relaxed);
    }

    /// Delivers every n-th event twice.
    pub fn repeat_every(&self, entries: usize) {
        self.state.repeat_every.store(entries, Ordering::Relaxed);
    }

    /// The details of all events so far.
    pub fn details(&self) -> Vec<Json> {
        self.state.details.lock().expect("the lock is poisoned").clone()
    }

    /// The entries of all events that do not match the rule.
    pub fn others(&self) -> Vec<Json> {
        self.state.others.lock().expect("the lock is poisoned").clone()
    }

    /// Waits until no invocation is running.
    pub async fn idle(&self) {
        loop {
            let ended = self.state.ended.notified();
            if self.state.under_way.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl State {
    fn put(self: Arc<State>, parts: Parts, body: Bytes) -> Response<Body> {
        assert_eq!(target(&parts.headers), "AWSEvents.PutEvents");
        assert!(body.len() <= MAX_BYTES, "{} bytes in one request", body.len());
        let call: Json = serde_json::from_slice(&body).expect("the request is not JSON");
        let entries = call["Entries"].as_array().expect("the request has no entries");
        assert!((1..=10).contains(&entries.len()), "{} entries in one request", entries.len());
        let results: Vec<Json> = entries.iter().map(|entry| self.take(entry)).collect();
        let failed = results.iter().filter(|result| result.get("ErrorCode").is_some()).count();
        let answer = json!({"FailedEntryCount": failed, "Entries": results});
        let response = Response::builder().header("content-type", "application/x-amz-json-1.1");
        response.body(answer.to_string().into()).expect("failed to build a response")
    }

    fn take(self: &Arc<State>, entry: &Json) -> Json {
        let number = self.entries.fetch_add(1, Ordering::Relaxed) + 1;
        let every = |every: &AtomicUsize| {
            let every = every.load(Ordering::Relaxed);
            every > 0 && number.is_multiple_of(every)
        };
        if every(&self.refuse_every) {
            return json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"});
        }
        let detail = entry["Detail"].as_str().expect("the entry has no detail");
        let detail: Json = serde_json::from_str(detail).expect("the detail is not JSON");
        let id = Uuid::now_v7().to_string();
        if entry["Source"] == *self.source && entry["DetailType"] == *self.detail_type {
            self.details.lock().expect("the lock is poisoned").push(detail.clone());
            let event = json!({"version": "0", "id": id, "detail-type": entry["DetailType"],
                "source": entry["Source"], "account": "123456789012", "region": "us-east-1",
                "time": "2025-01-01T00:00:00Z", "resources": [], "detail": detail});
            for _ in 0..1 + usize::from(every(&self.repeat_every)) {
                self.under_way.fetch_add(1, Ordering::SeqCst);
                let (state, event) = (self.clone(), event.clone());
                tokio::spawn(async move { state.invoke(event).await });
            }
        } else {
            let other = json!({"source": entry["Source"], "detail-type": entry["DetailType"],
                "bus": entry["EventBusName"], "detail": detail});
            self.others.lock().expect("the lock is poisoned").push(other);
        }
        json!({"EventId": id})
    }

    async fn invoke(&self, event: Json) {
        for _ in 0..3 {
            match self.function.invoke(event.clone()).await {
                Ok(_) => break,
                Err(failure) => eprintln!("the invocation with an event failed: {failure:?}"),
            }
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_waiters();
    }
}
