//! Waiting for rows in the outbox.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use windlass_drivers::{ChannelListener, Postgres};

/// The channel that `windlass_enqueue` notifies.
const OUTBOX_CHANNEL: &str = "windlass_outbox";

/// Wakes one waiter when a row is put into the outbox.
pub(super) struct OutboxListener {
    listener: ChannelListener,
    notified: Arc<Notify>,
}

impl OutboxListener {
    pub(super) fn new(database: Postgres) -> OutboxListener {
        let notified = Arc::new(Notify::new());
        let notify = notified.clone();
        let listener = ChannelListener::new(database, OUTBOX_CHANNEL, move || notify.notify_one());
        OutboxListener { listener, notified }
    }

    /// Waits for a notification since the last call, at most for this long.
    pub(super) async fn wait(&self, timeout: Duration) {
        self.listener.start();
        let _ = tokio::time::timeout(timeout, self.notified.notified()).await;
    }
}
