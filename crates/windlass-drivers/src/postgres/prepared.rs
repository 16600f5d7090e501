//! Statements that are prepared once per connection.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use deadpool_postgres::Pool;
use parking_lot::Mutex;
use tokio_postgres::Statement;

use crate::Error;

/// A statement as the server gets it.
#[derive(Clone, Copy)]
pub(super) enum Sql<'a> {
    Text(&'a str),
    Prepared(&'a Statement),
}

/// Whether the connections of a pool can keep prepared statements, and since when they keep them.
#[derive(Default)]
pub(super) struct Sessions {
    kept: AtomicBool,
    prepared_since: Mutex<Option<Instant>>,
}

/// Statements are prepared again after this time. The server may keep a plan although the tables have grown since.
const PLAN_TTL: Duration = Duration::from_secs(30);

impl Sessions {
    /// Whether a connection of the pool always reaches the same session of the server.
    pub(super) fn kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    pub(super) fn set_kept(&self, kept: bool) {
        self.kept.store(kept, Ordering::Relaxed);
    }

    /// Forgets all statements if they are older than `PLAN_TTL`.
    pub(super) fn expire_plans(&self, pool: &Pool) {
        let mut since = self.prepared_since.lock();
        if since.is_none_or(|since| since.elapsed() > PLAN_TTL) {
            *since = Some(Instant::now());
            pool.manager().statement_caches.clear();
        }
    }

    /// Whether the statement failed because the server does not know it under this name, knows another one, or
    /// because its tables have changed. If so, all statements are forgotten.
    pub(super) fn lost_statement(&self, pool: &Pool, error: &Error) -> bool {
        let of_another_session = matches!(error.code.as_deref(), Some("26000" | "42P05"));
        let changed =
            error.code.as_deref() == Some("0A000") && error.message.contains("cached plan");
        if of_another_session {
            self.set_kept(false);
        }
        if of_another_session || changed {
            tracing::debug!(%error, "a prepared statement cannot be used");
            pool.manager().statement_caches.clear();
        }
        of_another_session || changed
    }
}
