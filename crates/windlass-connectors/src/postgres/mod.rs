//! PostgreSQL. Statements work on sets of rows, and every transaction is explicit, so that it works behind
//! a pooler that assigns a server connection per transaction.

#[cfg(feature = "export")]
mod binary;
mod catalog;
mod commit;
mod cut;
mod deferred;
mod describe;
#[cfg(feature = "export")]
mod extract;
mod fan_in;
mod fence;
mod group_commit;
mod history;
mod listener;
#[cfg(feature = "export")]
mod numeric;
mod outbox;
mod preview;
mod read;
mod replication;
mod row;
mod snapshot;
mod source;
mod split;
mod write;

use crate::Result;
use crate::Scope;
use crate::column_cache::ColumnCache;
use crate::sql::{Bind, Sql};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use windlass_core::Durability;
use windlass_drivers::{Param, Postgres, Transaction};

/// A PostgreSQL database with records.
pub(crate) struct PostgresConnection {
    db: Postgres,
    columns: ColumnCache,
    group_commit: group_commit::GroupCommit,
    conflicts: commit::RecentConflicts,
    outbox_listener: listener::OutboxListener,
    /// One permit for each snapshot that this process may hold.
    snapshots: Arc<Semaphore>,
}

impl PostgresConnection {
    pub(crate) fn new(db: Postgres) -> PostgresConnection {
        let outbox_listener = listener::OutboxListener::new(db.clone());
        let snapshots = Arc::new(Semaphore::new(snapshot::most_held(db.max_connections())));
        PostgresConnection {
            snapshots,
            db,
            columns: ColumnCache::default(),
            group_commit: Default::default(),
            conflicts: Default::default(),
            outbox_listener,
        }
    }

    /// A transaction that reads the catalog or plans chunks. Disables JIT: compiling costs more than
    /// these queries take.
    async fn catalog_tx(&self) -> Result<Transaction> {
        let settings = format!("{}; SET LOCAL jit = off", read_settings(CATALOG_TIMEOUT));
        Ok(self.db.transaction(&settings).await?)
    }

    /// [`PostgresConnection::catalog_tx`], under the snapshot of a job if it has one.
    async fn plan_tx(&self, scope: &Scope) -> Result<Transaction> {
        let settings = format!("{}; SET LOCAL jit = off", read_settings(CATALOG_TIMEOUT));
        snapshot::begin(&self.db, scope, &settings).await
    }

    /// A transaction that reads a chunk.
    async fn chunk_read_tx(&self, scope: &Scope) -> Result<Transaction> {
        snapshot::begin(&self.db, scope, &chunk_read_settings(scope)).await
    }

    /// A transaction that writes for a job. Short timeouts keep a stalled worker from locking the
    /// user's rows.
    async fn write_tx(&self, scope: &Scope) -> Result<Transaction> {
        Ok(self.db.transaction(&write_settings(scope)).await?)
    }

    /// A transaction on the ledger's tables alone.
    async fn ledger_tx(&self) -> Result<Transaction> {
        Ok(self.db.transaction(LEDGER_SETTINGS).await?)
    }
}

/// The settings of a transaction that only reads: one snapshot for all its statements, dates in ISO
/// form, and floats inside arrays with all their digits. How the user's own conditions read dates does
/// not change.
fn read_settings(timeout: Duration) -> String {
    let timeout = milliseconds(timeout);
    format!(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; \
         SELECT set_config('datestyle', 'ISO', true), \
         set_config('intervalstyle', 'postgres', true), \
         set_config('extra_float_digits', '1', true), \
         set_config('statement_timeout', '{timeout}', true), \
         set_config('idle_in_transaction_session_timeout', '{timeout}', true)"
    )
}

/// The settings of a transaction that reads a chunk. Disables parallel query: chunks are read
/// concurrently, and starting parallel workers for each costs more than they save.
fn chunk_read_settings(scope: &Scope) -> String {
    let settings = read_settings(scope.job_type.chunk.timeout);
    format!("{settings}; SET LOCAL max_parallel_workers_per_gather = 0")
}

/// The settings of a transaction on the ledger, whose statements access single rows by key.
const LEDGER_SETTINGS: &str = "SET LOCAL statement_timeout = 60000; \
                               SET LOCAL idle_in_transaction_session_timeout = 60000";

/// The settings of a transaction that writes for a job.
fn write_settings(scope: &Scope) -> String {
    let chunk = &scope.job_type.chunk;
    format!(
        "SELECT set_config('statement_timeout', '{}', true), \
         set_config('idle_in_transaction_session_timeout', '{1}', true), \
         set_config('lock_timeout', '{1}', true){2}",
        milliseconds(chunk.timeout),
        milliseconds(chunk.lease),
        commit_setting(chunk.durability),
    )
}

/// The end of the settings of a transaction whose commit may wait for the disk later, in
/// [`Committing::flush`](crate::Committing::flush).
fn commit_setting(durability: Durability) -> &'static str {
    match durability {
        Durability::Group => "; SET LOCAL synchronous_commit = off",
        Durability::Commit => "",
    }
}

/// The timeout of a statement that reads the catalog or plans chunks.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(600);

/// The timeout of a health query or of a question about replication.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(5);

/// At least 1, since 0 would disable the timeout, and at most what the server accepts.
fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1)
}

/// Commits a transaction whose work succeeded, and rolls it back otherwise.
async fn finish<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    match outcome {
        Ok(value) => {
            transaction.commit().await?;
            Ok(value)
        }
        Err(error) => {
            // A failed rollback closes the connection, which rolls back too. The first error tells
            // more.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// Ends a transaction that only read.
async fn release<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    let _ = transaction.rollback().await;
    outcome
}

impl Sql<'_> {
    /// The bound values as parameters of PostgreSQL.
    fn params(&self) -> Vec<Param<'_>> {
        let params = self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => Param::from(value.to_text()),
            Bind::Array(array) => array.param(),
        });
        params.collect()
    }
}

/// Runs work in a [`PostgresConnection::catalog_tx`], or with a scope in a [`PostgresConnection::plan_tx`].
macro_rules! in_catalog_tx {
    ($data:expr, $scope:expr, |$transaction:ident| $work:expr) => {{
        let $transaction = $data.plan_tx($scope).await?;
        let outcome = $work.await;
        release($transaction, outcome).await
    }};
    ($data:expr, |$transaction:ident| $work:expr) => {{
        let $transaction = $data.catalog_tx().await?;
        let outcome = $work.await;
        release($transaction, outcome).await
    }};
}
use in_catalog_tx;
