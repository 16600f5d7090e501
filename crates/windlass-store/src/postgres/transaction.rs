//! A transaction of the store, and the signal that follows its commit.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tokio::sync::Mutex;
use uuid::Uuid;
use windlass_core::config::Dialect;
use windlass_drivers::{ErrorClass, Postgres};

use super::dialect::{self, Commit};
use super::{params, sql};
use crate::subscription::ChangeCounter;
use crate::{Result, Topics};

/// An open transaction. Its commit signals the change to all processes if [`Transaction::signal`] was called.
pub(super) struct Transaction {
    inner: windlass_drivers::Transaction,
    changed: AtomicU8,
    undone: AtomicBool,
    signaller: Arc<Signaller>,
}

impl Transaction {
    pub(super) fn new(
        inner: windlass_drivers::Transaction,
        signaller: Arc<Signaller>,
    ) -> Transaction {
        let (changed, undone) = Default::default();
        Transaction { inner, changed, undone, signaller }
    }

    /// Signals the change after the commit.
    pub(super) fn signal(&self) {
        self.signal_topics(Topics::ALL);
    }

    /// Signals a change of these topics after the commit.
    pub(super) fn signal_topics(&self, topics: Topics) {
        self.changed.fetch_or(topics.bits(), Ordering::Relaxed);
    }

    /// Makes the transaction roll back at its end, although its work succeeds.
    pub(super) fn undo(&self) {
        self.undone.store(true, Ordering::Relaxed);
    }

    /// Commits if the work succeeded, and rolls back if not. The result of the rollback does not matter: if it
    /// fails, the connection is closed, which rolls back as well.
    pub(super) async fn finish<T>(self, result: Result<T>) -> Result<T> {
        match result {
            Ok(value) if !self.undone.load(Ordering::Relaxed) => {
                self.commit().await?;
                Ok(value)
            }
            result => {
                let _ = self.inner.rollback().await;
                result
            }
        }
    }

    async fn commit(self) -> Result<()> {
        let Transaction { inner, changed, signaller, .. } = self;
        let committed = inner.commit().await;
        // Also after a lost connection: the server may have committed.
        let may_be_visible =
            committed.as_ref().err().is_none_or(|error| error.class == ErrorClass::Connection);
        let topics = Topics::from_bits(changed.into_inner());
        if topics != Topics::NONE && may_be_visible {
            signaller.signal(topics).await;
        }
        Ok(committed?)
    }
}

impl Deref for Transaction {
    type Target = windlass_drivers::Transaction;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// Signals committed changes: to this process at once, to others by NOTIFY, unless the dialect has none.
///
/// NOTIFY has a transaction of its own, because PostgreSQL commits transactions with NOTIFY one at a time: inside
/// the transaction of the change it would limit a server to some hundred submits per second. Signals of concurrent
/// commits share one NOTIFY. If the process dies between the commit and the NOTIFY, the other processes find the
/// change when they poll.
pub(super) struct Signaller {
    /// Where NOTIFY is sent to.
    database: Option<Postgres>,
    changes: ChangeCounter,
    /// Names this process in its notifications.
    id: String,
    requested: AtomicU64,
    /// The topics of the requested signals that are not sent.
    topics: AtomicU8,
    /// How many of the requested signals are sent.
    sent: Mutex<u64>,
}

impl Signaller {
    pub(super) fn new(database: Option<Postgres>, changes: ChangeCounter) -> Signaller {
        let id = Uuid::now_v7().simple().to_string();
        Signaller {
            database,
            changes,
            id,
            requested: AtomicU64::default(),
            topics: AtomicU8::default(),
            sent: Mutex::default(),
        }
    }

    /// Counts a change that another process has notified.
    pub(super) fn received(&self, payload: &str) {
        let (sender, topics) = payload.split_once(' ').unwrap_or((payload, ""));
        // This process knows its own changes already.
        if sender != self.id {
            self.changes.increment(topics.parse().map_or(Topics::ALL, Topics::from_bits));
        }
    }

    /// Signals a change that is committed. Returns when the notification is sent, so that a program may exit.
    pub(super) async fn signal(&self, topics: Topics) {
        self.changes.increment(topics);
        let Some(database) = &self.database else { return };
        self.topics.fetch_or(topics.bits(), Ordering::SeqCst);
        let own = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut sent = self.sent.lock().await;
        if *sent >= own {
            return;
        }
        // All of these are committed: their notification is this one.
        let requested = self.requested.load(Ordering::SeqCst);
        let topics = self.topics.swap(0, Ordering::SeqCst);
        let settings = dialect::settings(Dialect::Postgres, Commit::Async);
        let payload = format!("{} {topics}", self.id);
        let params = params![payload.as_str()];
        let notified = database.single(&settings, sql!("signal"), params).await;
        if let Err(error) = notified {
            tracing::debug!(%error, "failed to notify other processes of a change; they will poll");
        }
        *sent = requested;
    }
}
