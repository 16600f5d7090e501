//! A task that listens on a channel for the lifetime of its owner.

use super::{Listener, Postgres};
use crate::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Listens on a channel with one connection for the whole process, reconnects when that is lost, and
/// calls a function for every notification.
///
/// The function is also called whenever listening begins, since notifications may have been missed
/// before. Where notifications do not arrive, as behind a pooler in transaction mode, it is never
/// called: the owner must poll as well.
pub struct ChannelListener {
    database: Postgres,
    channel: &'static str,
    notify: Arc<dyn Fn() + Send + Sync>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl ChannelListener {
    /// A listener that calls `notify`. It does not connect before [`ChannelListener::start`].
    pub fn new(
        database: Postgres,
        channel: &'static str,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> ChannelListener {
        ChannelListener { database, channel, notify: Arc::new(notify), task: Mutex::default() }
    }

    /// Starts the task, unless it is running.
    pub fn start(&self) {
        let mut task = self.task.lock();
        // The task may have ended with the runtime that it was spawned on.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let (database, notify) = (self.database.clone(), self.notify.clone());
            *task = Some(tokio::spawn(run(database, self.channel, notify)));
        }
    }
}

impl Drop for ChannelListener {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

/// The pause before the first attempt to reconnect. It doubles with every failed attempt.
const MIN_RECONNECT_DELAY: Duration = Duration::from_millis(100);
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(30);
/// The pause after notifications did not arrive. A server that stalls looks like a pooler.
const POOLER_RETRY_DELAY: Duration = Duration::from_secs(600);

async fn run(database: Postgres, channel: &str, notify: Arc<dyn Fn() + Send + Sync>) {
    let mut delay = MIN_RECONNECT_DELAY;
    loop {
        match database.listen(channel).await {
            Ok(Some(listener)) => {
                delay = MIN_RECONNECT_DELAY;
                let error = forward(listener, notify.as_ref()).await;
                tracing::debug!(%error, channel, "stopped listening; reconnecting");
            }
            Ok(None) => {
                tracing::info!(
                    channel,
                    "notifications do not arrive, probably because of a connection pooler; polling"
                );
                delay = POOLER_RETRY_DELAY;
            }
            Err(error) => {
                tracing::debug!(%error, channel, "failed to listen; polling until it succeeds");
                delay = (delay * 2).min(MAX_RECONNECT_DELAY);
            }
        }
        tokio::time::sleep(delay).await;
    }
}

async fn forward(mut listener: Listener, notify: &(dyn Fn() + Send + Sync)) -> Error {
    loop {
        // Before the first notification too: some may have been missed.
        notify();
        if let Err(error) = listener.recv().await {
            return error;
        }
    }
}
