//! Hears what is notified on a channel, on one connection for the whole process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use windlass_drivers::{Listener, Postgres};

/// Wakes one waiter. While notifications do not arrive, it looks by itself when its time is up.
pub(super) struct Ear {
    database: Postgres,
    channel: &'static str,
    heard: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Ear {
    pub(super) fn new(database: Postgres, channel: &'static str) -> Ear {
        Ear { database, channel, heard: Arc::default(), task: Mutex::default() }
    }

    /// Waits for a notification since the last call, at most so long.
    pub(super) async fn wait(&self, at_most: Duration) {
        self.listen();
        let _ = tokio::time::timeout(at_most, self.heard.notified()).await;
    }

    /// Begins to listen, unless that was done.
    fn listen(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // A task can have ended with the runtime it was spawned on.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let heard = self.heard.clone();
            *task = Some(tokio::spawn(hear(self.database.clone(), self.channel, heard)));
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

async fn hear(database: Postgres, channel: &str, heard: Arc<Notify>) {
    let mut wait = SHORTEST;
    loop {
        match database.listen(channel).await {
            Ok(Some(listener)) => {
                wait = SHORTEST;
                let error = pass_on(listener, &heard).await;
                tracing::debug!(%error, channel, "no longer listening");
            }
            Ok(None) => {
                tracing::info!(channel, "notifications do not arrive (a pooler?), polling");
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::debug!(%error, channel, "cannot listen, polling");
                wait = (wait * 2).min(LONGEST);
            }
        }
        tokio::time::sleep(wait).await;
    }
}

async fn pass_on(mut listener: Listener, heard: &Notify) -> windlass_drivers::Error {
    loop {
        // First of all, and without a notification: some may have been missed until now.
        heard.notify_one();
        if let Err(error) = listener.recv().await {
            return error;
        }
    }
}
