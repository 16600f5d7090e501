//! Waiting for a change of the store.

use std::sync::Arc;
use std::time::Duration;

use windlass_drivers::{ChannelListener, Postgres};

use super::PostgresStore;
use crate::change_notifier::ChangeNotifier;

pub(super) async fn changed(store: &PostgresStore, at_most: Duration) {
    store.ear.listener.start();
    store.ear.changes.wait(at_most).await;
}

/// The channel that every change of the store notifies.
const CHANNEL: &str = "windlass";

/// Passes the notifications of the database on to the waiters of this process.
pub(super) struct ChangeListener {
    listener: ChannelListener,
    changes: Arc<ChangeNotifier>,
}

impl ChangeListener {
    pub(super) fn new(database: Postgres) -> ChangeListener {
        let changes = Arc::new(ChangeNotifier::new());
        let notify = changes.clone();
        let listener = ChannelListener::new(database, CHANNEL, move || notify.moved());
        ChangeListener { listener, changes }
    }
}
