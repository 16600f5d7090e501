//! A transaction of the store, and the signal that follows its commit.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;
use uuid::Uuid;
use windlass_drivers::{Postgres, Row};

use super::{async_commit, params, sql};
use crate::Result;
use crate::subscription::ChangeCounter;

/// An open transaction. Its commit signals the change to all processes if [`Transaction::signal`] was called.
pub(super) struct Transaction {
    inner: windlass_drivers::Transaction,
    changed: AtomicBool,
    signaller: Arc<Signaller>,
}

impl Transaction {
    pub(super) fn new(
        inner: windlass_drivers::Transaction,
        signaller: Arc<Signaller>,
    ) -> Transaction {
        Transaction { inner, changed: AtomicBool::default(), signaller }
    }

    /// Like [`Transaction::new`], for a transaction whose first statement returned `rows`.
    pub(super) fn with_rows(
        (inner, rows): (windlass_drivers::Transaction, Vec<Row>),
        signaller: Arc<Signaller>,
    ) -> (Transaction, Vec<Row>) {
        (Transaction::new(inner, signaller), rows)
    }

    /// Signals the change after the commit.
    pub(super) fn signal(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    pub(super) async fn commit(self) -> Result<()> {
        let Transaction { inner, changed, signaller } = self;
        let committed = inner.commit().await;
        // Also after an error: the server may have committed.
        if changed.into_inner() {
            signaller.signal().await;
        }
        Ok(committed?)
    }

    pub(super) async fn rollback(self) -> Result<()> {
        Ok(self.inner.rollback().await?)
    }
}

impl Deref for Transaction {
    type Target = windlass_drivers::Transaction;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// Signals committed changes: to this process at once, to others by NOTIFY.
///
/// NOTIFY has a transaction of its own, because PostgreSQL commits transactions with NOTIFY one at a time: inside
/// the transaction of the change it would limit a server to some hundred submits per second. Signals of concurrent
/// commits share one NOTIFY. If the process dies between the commit and the NOTIFY, the other processes find the
/// change when they poll.
pub(super) struct Signaller {
    database: Postgres,
    changes: ChangeCounter,
    /// Names this process in its notifications.
    id: String,
    requested: AtomicU64,
    /// How many of the requested signals are sent.
    sent: Mutex<u64>,
}

impl Signaller {
    pub(super) fn new(database: Postgres, changes: ChangeCounter) -> Signaller {
        let id = Uuid::now_v7().simple().to_string();
        Signaller { database, changes, id, requested: AtomicU64::default(), sent: Mutex::default() }
    }

    /// Whether this process sent a notification with this payload.
    pub(super) fn is_own(&self, payload: &str) -> bool {
        self.id == payload
    }

    /// Signals a change that is committed. Returns when the notification is sent, so that a program may exit.
    pub(super) async fn signal(&self) {
        self.changes.increment();
        let own = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut sent = self.sent.lock().await;
        if *sent >= own {
            return;
        }
        // All of these are committed: their notification is this one.
        let requested = self.requested.load(Ordering::SeqCst);
        let (settings, params) = (async_commit(), params![self.id.as_str()]);
        let notified = self.database.single(&settings, sql!("signal"), params).await;
        if let Err(error) = notified {
            tracing::debug!(%error, "failed to notify other processes of a change; they will poll");
        }
        *sent = requested;
    }
}
