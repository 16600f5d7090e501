//! Listens for notifications of changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use windlass_drivers::{Listener, Postgres};

use super::PostgresStore;
use super::transaction::Signaller;
use crate::subscription::{ChangeCounter, ChangeSource};
use crate::{ChangeStore, Subscription, Topics};

impl ChangeStore for PostgresStore {
    fn subscribe_to(&self, topics: Topics) -> Subscription {
        Subscription::new(&self.listener.feed.changes, topics, self.listener.clone())
    }

    fn change_count(&self) -> Option<i64> {
        let feed = &self.listener.feed;
        feed.connected.load(Ordering::SeqCst).then(|| feed.changes.count())
    }
}

/// Receives notifications on one connection for the whole process.
pub(super) struct ChangeListener {
    feed: Arc<Feed>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What the listening task uses.
struct Feed {
    /// Where it listens, unless the dialect has no notifications.
    database: Option<Postgres>,
    changes: ChangeCounter,
    signaller: Arc<Signaller>,
    /// Whether notifications arrive now.
    connected: AtomicBool,
}

impl ChangeListener {
    pub(super) fn new(
        database: Option<Postgres>,
        changes: ChangeCounter,
        signaller: Arc<Signaller>,
    ) -> ChangeListener {
        let feed = Feed { database, changes, signaller, connected: AtomicBool::default() };
        ChangeListener { feed: Arc::new(feed), task: Mutex::default() }
    }
}

#[async_trait]
impl ChangeSource for ChangeListener {
    /// Starts the listening task, unless it runs.
    fn start(&self) {
        let mut task = self.task.lock();
        // The task ends when the runtime that it was spawned on shuts down.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(listen(self.feed.clone())));
        }
    }

    async fn watch(&self) {
        self.start();
        std::future::pending().await
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

const MIN_RECONNECT_DELAY: Duration = Duration::from_millis(100);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(30);
/// The pause after notifications did not arrive. A server that stalls looks like a pooler.
const POOLER_RETRY_DELAY: Duration = Duration::from_secs(600);

/// Listens for as long as the store exists. While that is not possible, subscriptions wait for their
/// full timeout and then poll. In the dialect `strict` and behind some connection poolers it is never possible.
async fn listen(feed: Arc<Feed>) {
    let Some(database) = &feed.database else {
        tracing::info!("store.dialect = \"strict\" has no notifications; polling for changes");
        return std::future::pending().await;
    };
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        // A task of an earlier runtime may have been aborted while it was connected.
        feed.connected.store(false, Ordering::SeqCst);
        match database.listen("windlass").await {
            Ok(Some(listener)) => {
                delay = MIN_RECONNECT_DELAY;
                let error = forward(listener, &feed).await;
                tracing::debug!(%error, "lost the connection that listens to the store; reconnecting");
            }
            Ok(None) => {
                tracing::info!(
                    "the store's notifications do not arrive (probably a connection pooler); polling"
                );
                delay = POOLER_RETRY_DELAY;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot listen to the store; polling");
                delay = (delay * 2).min(MAX_RECONNECT_DELAY);
            }
        }
        feed.connected.store(false, Ordering::SeqCst);
        tokio::time::sleep(delay).await;
    }
}

async fn forward(mut listener: Listener, feed: &Feed) -> windlass_drivers::Error {
    // Some notifications may have been missed until now.
    feed.changes.increment(Topics::ALL);
    feed.connected.store(true, Ordering::SeqCst);
    loop {
        match listener.recv().await {
            Ok(payload) => feed.signaller.received(&payload),
            Err(error) => return error,
        }
    }
}
