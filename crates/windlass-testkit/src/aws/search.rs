//! A search engine that takes `_bulk` requests as OpenSearch does and keeps the documents.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::http::Response;
use axum::http::request::Parts;
use serde_json::{Value as Json, json};

use super::http::{Served, serve};

/// A search engine. It refuses a document that is older than the one that it has.
pub struct SearchEngine {
    served: Served,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    documents: Mutex<BTreeMap<String, (u64, Json)>>,
    indexed: Mutex<Vec<String>>,
    signatures: Mutex<Vec<String>>,
    refused: AtomicUsize,
}

impl SearchEngine {
    /// Starts an empty one on a free port.
    pub async fn start() -> SearchEngine {
        let state = Arc::new(State::default());
        let shared = state.clone();
        let served = serve(move |parts, body| {
            let state = shared.clone();
            async move { state.bulk(&parts, &body) }
        })
        .await;
        SearchEngine { served, state }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.served.addr)
    }

    /// The documents by id.
    pub fn documents(&self) -> BTreeMap<String, Json> {
        let documents = self.state.documents.lock().expect("the lock is poisoned");
        documents.iter().map(|(id, (_, document))| (id.clone(), document.clone())).collect()
    }

    /// The ids of all documents that were put since the last call, in order.
    pub fn take_indexed(&self) -> Vec<String> {
        std::mem::take(&mut self.state.indexed.lock().expect("the lock is poisoned"))
    }

    /// The `Authorization` headers of all requests.
    pub fn authorizations(&self) -> Vec<String> {
        self.state.signatures.lock().expect("the lock is poisoned").clone()
    }

    /// Refuses the next actions as overloaded.
    pub fn refuse(&self, actions: usize) {
        self.state.refused.store(actions, Ordering::SeqCst);
    }
}

impl State {
    fn bulk(&self, parts: &Parts, body: &Bytes) -> Response<Body> {
        assert_eq!((parts.method.as_str(), parts.uri.path()), ("POST", "/_bulk"));
        let signature = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let signature = signature.unwrap_or_default().to_owned();
        self.signatures.lock().expect("the lock is poisoned").push(signature);
        let text = std::str::from_utf8(body).expect("the request is not text");
        assert!(text.ends_with('\n'), "a bulk request ends with a newline: {text}");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).expect(line));
        let mut items = Vec::new();
        while let Some(action) = lines.next() {
            let (kind, target) = action.as_object().and_then(|all| all.iter().next()).expect(text);
            let document =
                (kind == "index").then(|| lines.next().expect("an index has a document"));
            items.push(json!({ kind: self.act(target, document) }));
        }
        let errors = items.iter().any(|item| item.to_string().contains("\"error\""));
        let answer = json!({"took": 1, "errors": errors, "items": items});
        let response = Response::builder().header("content-type", "application/json");
        response.body(answer.to_string().into()).expect("failed to build a response")
    }

    fn act(&self, target: &Json, document: Option<Json>) -> Json {
        let id = target["_id"].as_str().expect("an action has an id");
        let version = target["version"].as_u64().expect("an action has a version");
        assert_eq!(target["version_type"], "external_gte");
        let error =
            |status: u64, kind: &str| json!({"_id": id, "status": status, "error": {"type": kind}});
        let refused =
            self.refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if refused.is_ok() {
            return error(429, "es_rejected_execution_exception");
        }
        let mut documents = self.documents.lock().expect("the lock is poisoned");
        if documents.get(id).is_some_and(|(known, _)| *known > version) {
            return error(409, "version_conflict_engine_exception");
        }
        match document {
            Some(document) => {
                self.indexed.lock().expect("the lock is poisoned").push(id.to_owned());
                documents.insert(id.to_owned(), (version, document));
                json!({"_id": id, "status": 201})
            }
            None => {
                let status = if documents.remove(id).is_some() { 200 } else { 404 };
                json!({"_id": id, "status": status})
            }
        }
    }
}
