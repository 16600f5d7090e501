//! What differs between the dialects of a store in PostgreSQL: the isolation level, the settings of
//! transactions, and which transactions are repeated.

use std::borrow::Cow;
use std::time::Duration;

use windlass_core::config::Dialect;
use windlass_core::{Growth, RetryPolicy};
use windlass_drivers::ErrorClass;

use super::{PostgresStore, sql};
use crate::{Result, StoreError};

/// Whether a commit waits for the disk.
#[derive(Clone, Copy)]
pub(super) enum Commit {
    Durable,
    /// A crash of the server may lose the commit, so it is only for changes that are made again: the next
    /// heartbeat renews a lease, and the end of a chunk is recorded in the ledger. A lease must be durable,
    /// since its epoch could be given twice otherwise.
    Async,
}

/// The settings of a transaction.
pub(super) fn settings(dialect: Dialect, commit: Commit) -> String {
    // A process that stalls inside a transaction must not block a job's row for long.
    let timeout = "SET LOCAL idle_in_transaction_session_timeout = '30s'";
    let commit = match commit {
        Commit::Durable => "",
        Commit::Async => "; SET LOCAL synchronous_commit = off",
    };
    format!("{}; {timeout}{commit}", isolation(dialect))
}

/// The isolation level that all statements expect, whatever the server's default is.
pub(super) fn isolation(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Strict => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        _ => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    }
}

/// The settings of a transaction that leases. Its statement walks indexes in order and stops early. The
/// planner does not expect that while it has no statistics on the chunks of a new job, and would sort all
/// of them every time. Measured with 2,000 jobs, one of which has 20,000 chunks: 0.8 ms with these
/// settings, 15 ms without.
pub(super) fn lease_settings(dialect: Dialect) -> String {
    match dialect {
        // Two transactions that find the same free slots are not serializable, so limits need no lock.
        Dialect::Strict => {
            format!("{}; {}", settings(dialect, Commit::Durable), sql!("avoid_scans"))
        }
        _ => format!(
            "{}; SELECT set_config('jit', 'off', true), \
             set_config('enable_seqscan', 'off', true), \
             set_config('enable_bitmapscan', 'off', true), \
             set_config('idle_in_transaction_session_timeout', '30s', true); {}",
            isolation(dialect),
            sql!("lock_limits")
        ),
    }
}

/// The waits before a transaction that could not be serialized is repeated, and how often it is. Of the
/// transactions that conflict at least one commits, so these attempts suffice for any number of processes
/// that a store can serve.
const REPETITION: RetryPolicy = RetryPolicy {
    attempts: 100,
    backoff: Duration::from_millis(2),
    growth: Growth::Exponential,
    factor: 1.5,
    max: Duration::from_millis(250),
};

impl PostgresStore {
    /// The text of a statement. YugabyteDB has no SKIP LOCKED at SERIALIZABLE, and it is not needed there: a
    /// transaction that waited for a row which another one changed is repeated.
    pub(super) fn spell<'a>(&self, sql: &'a str) -> Cow<'a, str> {
        match self.dialect {
            Dialect::Strict => sql.replace(" SKIP LOCKED", "").into(),
            _ => sql.into(),
        }
    }

    /// Runs a whole transaction. In the dialect `strict` it is repeated when the server could not serialize it or
    /// chose it to end a deadlock: then it was rolled back for certain. It is not repeated after a lost
    /// connection, since the server may have committed.
    pub(super) async fn repeat<T, F>(&self, transaction: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut failures = 0;
        loop {
            let outcome = transaction().await;
            let Err(error) = &outcome else { return outcome };
            failures += 1;
            let again = self.dialect == Dialect::Strict && is_serialization_failure(error);
            if !again || failures >= REPETITION.attempts {
                return outcome;
            }
            tracing::trace!(%error, failures, "repeating a transaction of the store");
            // Down to zero: a transaction that fails at first has often waited for the other one to end.
            let wait = REPETITION.backoff_after(failures).mul_f64(rand::random());
            tokio::time::sleep(wait).await;
        }
    }
}

/// Whether the server has rolled the transaction back because of concurrent ones.
fn is_serialization_failure(error: &StoreError) -> bool {
    let StoreError::Database(error) = error else { return false };
    // The class is `Connection` where the outcome is unknown.
    error.class == ErrorClass::Retry && matches!(error.code.as_deref(), Some("40001" | "40P01"))
}
