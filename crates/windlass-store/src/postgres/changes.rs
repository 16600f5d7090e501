//! Listens for notifications of changes.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use windlass_drivers::{Listener, Postgres};

use super::PostgresStore;
use crate::subscription::{ChangeCounter, ChangeSource};
use crate::{ChangeStore, Subscription};

impl ChangeStore for PostgresStore {
    fn subscribe(&self) -> Subscription {
        Subscription::new(&self.listener.changes, self.listener.clone())
    }
}

/// Receives notifications on one connection for the whole process.
pub(super) struct ChangeListener {
    database: Postgres,
    changes: ChangeCounter,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl ChangeListener {
    pub(super) fn new(database: Postgres) -> ChangeListener {
        ChangeListener { database, changes: ChangeCounter::new(), task: Mutex::default() }
    }
}

#[async_trait]
impl ChangeSource for ChangeListener {
    /// Starts the listening task, unless it runs.
    fn start(&self) {
        let mut task = self.task.lock();
        // The task ends when the runtime that it was spawned on shuts down.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(listen(self.database.clone(), self.changes.clone())));
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

/// Listens for as long as the store exists. While that is not possible, subscriptions wait for their
/// full timeout and then poll. Behind some connection poolers it is never possible.
async fn listen(database: Postgres, changes: ChangeCounter) {
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        match database.listen("windlass").await {
            Ok(Some(listener)) => {
                delay = MIN_RECONNECT_DELAY;
                let error = forward(listener, &changes).await;
                tracing::debug!(%error, "lost the connection that listens to the store; reconnecting");
            }
            Ok(None) => {
                tracing::info!(
                    "the store's notifications do not arrive (probably a connection pooler); polling"
                );
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot listen to the store; polling");
                delay = (delay * 2).min(MAX_RECONNECT_DELAY);
            }
        }
        tokio::time::sleep(delay).await;
    }
}

async fn forward(mut listener: Listener, changes: &ChangeCounter) -> windlass_drivers::Error {
    loop {
        // The first increment is without a notification: some may have been missed until now.
        changes.increment();
        if let Err(error) = listener.recv().await {
            return error;
        }
    }
}
