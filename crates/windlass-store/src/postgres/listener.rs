//! Waiting for a change.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use windlass_drivers::{Listener, Postgres};

use super::PostgresStore;
use crate::change_notifier::ChangeNotifier;

pub(super) async fn changed(store: &PostgresStore, at_most: Duration) {
    store.ear.listen();
    store.ear.changes.wait(at_most).await;
}

/// Hears the notifications, on one connection for the whole process.
pub(super) struct ChangeListener {
    database: Postgres,
    changes: Arc<ChangeNotifier>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl ChangeListener {
    pub(super) fn new(database: Postgres) -> ChangeListener {
        ChangeListener {
            database,
            changes: Arc::new(ChangeNotifier::new()),
            task: Mutex::default(),
        }
    }

    /// Begins to listen, unless that was done.
    fn listen(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // A task can have ended with the runtime it was spawned on.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(hear(self.database.clone(), self.changes.clone())));
        }
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Listens for as long as the store lives. While that is not possible, nobody is woken, and whoever
/// waits looks again by itself when its time is up; behind some poolers it never is.
async fn hear(database: Postgres, changes: Arc<ChangeNotifier>) {
    let mut wait = SHORTEST;
    loop {
        match database.listen("windlass").await {
            Ok(Some(listener)) => {
                wait = SHORTEST;
                let error = pass_on(listener, &changes).await;
                tracing::debug!(%error, "no longer listening to the store");
            }
            Ok(None) => {
                tracing::info!("the store's notifications do not arrive (a pooler?), polling it");
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot listen to the store, polling it");
                wait = (wait * 2).min(LONGEST);
            }
        }
        tokio::time::sleep(wait).await;
    }
}

async fn pass_on(mut listener: Listener, changes: &ChangeNotifier) -> windlass_drivers::Error {
    loop {
        // First of all, and without a notification: some may have been missed until now.
        changes.moved();
        if let Err(error) = listener.recv().await {
            return error;
        }
    }
}
