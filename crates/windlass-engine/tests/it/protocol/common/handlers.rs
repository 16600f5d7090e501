//! Handlers that wait, or change the database, before they do the usual work.

use crate::protocol::common::{TestDatabase, Visit};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use windlass_core::{ItemError, Outcome};
use windlass_engine::ItemContext;

/// The answer of a handler.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Outcome, ItemError>> + Send>>;

/// A handler that reports each call and answers when the test permits it.
#[derive(Clone)]
pub(crate) struct HeldHandler {
    pub(crate) begun: Arc<Notify>,
    pub(crate) answer: Arc<Semaphore>,
}

impl HeldHandler {
    pub(crate) fn new() -> HeldHandler {
        HeldHandler { begun: Arc::new(Notify::new()), answer: Arc::new(Semaphore::new(0)) }
    }

    /// Reports the call, and waits for a permit.
    pub(crate) async fn wait(&self) {
        self.begun.notify_one();
        let _permit = self.answer.acquire().await.unwrap();
    }

    /// Waits for every visit.
    pub(crate) fn handler(&self) -> impl Fn(Visit, ItemContext) -> Answer + use<> {
        let held = self.clone();
        move |visit, _| {
            let held = held.clone();
            Box::pin(async move {
                held.wait().await;
                visit.done()
            })
        }
    }
}

/// Every visit takes a permit.
pub(crate) fn metered(permits: &Arc<Semaphore>) -> impl Fn(Visit, ItemContext) -> Answer + use<> {
    let permits = permits.clone();
    move |visit, _| {
        let permits = permits.clone();
        Box::pin(async move {
            permits.acquire().await.unwrap().forget();
            visit.done()
        })
    }
}

/// Runs a statement when this visit is worked.
pub(crate) fn running(
    app: &TestDatabase,
    at: i64,
    sql: &'static str,
) -> impl Fn(Visit, ItemContext) -> Answer + use<> {
    let app = app.clone();
    move |visit, _| {
        let app = app.clone();
        Box::pin(async move {
            if visit.id == at {
                app.run(sql).await;
            }
            visit.done()
        })
    }
}
