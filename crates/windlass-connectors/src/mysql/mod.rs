//! MySQL and MariaDB. Statements work on sets of rows. A commit locks the rows that it may change before it
//! changes them.

mod catalog;
mod cells;
mod commit;
mod cut;
mod deferred;
mod describe;
mod dive;
mod durability;
#[cfg(feature = "export")]
mod extract;
mod fan_in;
mod fence;
mod history;
mod midpoint;
mod outbox;
mod preview;
mod read;
mod replication;
mod row;
mod source;
mod split;
mod value;
mod write;

pub(crate) use cells::Cells;
pub(crate) use value::{cast, compared};

use crate::column_cache::ColumnCache;
use crate::sql::{Bind, Sql};
use crate::{Result, Scope};
use std::time::Duration;
use windlass_drivers::Mysql;
use windlass_drivers::mysql::{self, Access, Transaction};

/// A MySQL or MariaDB database with records.
pub(crate) struct MysqlConnection {
    db: Mysql,
    columns: ColumnCache,
}

impl MysqlConnection {
    pub(crate) fn new(db: Mysql) -> MysqlConnection {
        MysqlConnection { db, columns: ColumnCache::default() }
    }

    /// A transaction that only reads, with one snapshot for all its statements.
    async fn read_tx(&self, timeout: Duration) -> Result<Transaction> {
        Ok(self.db.begin(Access::Read, &session_settings(timeout, timeout)).await?)
    }

    /// A transaction that writes for a job. Short timeouts keep a stalled worker from locking the
    /// user's rows.
    async fn write_tx(&self, scope: &Scope) -> Result<Transaction> {
        let chunk = &scope.job_type.chunk;
        Ok(self.db.begin(Access::Write, &session_settings(chunk.timeout, chunk.lease)).await?)
    }

    /// A transaction on the ledger's tables alone, whose statements access single rows by key. A worker
    /// that lost its lease may still lock one of the rows while its statement runs. The short lock
    /// timeout keeps that from blocking the rest of this process.
    async fn ledger_tx(&self) -> Result<Transaction> {
        let settings = session_settings(LEDGER_TIMEOUT, LEDGER_LOCK_TIMEOUT);
        Ok(self.db.begin(Access::Write, &settings).await?)
    }
}

/// The session session_settings for these timeouts of a statement and of a lock.
fn session_settings(statement: Duration, lock: Duration) -> String {
    session_settings_with_idle(statement, lock, lock.max(MIN_IDLE_TIMEOUT))
}

/// The same, with the timeout of an idle transaction: that long a transaction keeps its locks after its
/// process was suspended or its machine was lost. MariaDB and MySQL name most of the session_settings
/// differently, and each ignores the other's kind of comment. MySQL has no timeout for an idle
/// transaction, so the one of an idle connection serves.
fn session_settings_with_idle(statement: Duration, lock: Duration, idle: Duration) -> String {
    let [statement, lock, idle] = [statement, lock, idle].map(|time| time.as_secs().max(1));
    format!(
        "innodb_lock_wait_timeout = {lock} \
         /*M! , max_statement_time = {statement}, idle_transaction_timeout = {idle} */ \
         /*!50708 , max_execution_time = {statement}000, wait_timeout = {idle} */"
    )
}

/// The timeout of a statement on the ledger.
const LEDGER_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout of a lock on a ledger row.
const LEDGER_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The shortest timeout of an idle transaction.
const MIN_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of a statement that reads the catalog or plans chunks.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(600);

/// The timeout of a health query or of a question about replication.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(5);

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

/// Ends a transaction that only read, or whose changes must not stay.
async fn release<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    let _ = transaction.rollback().await;
    outcome
}

impl Sql<'_> {
    /// The bound values as parameters of MySQL.
    fn values(&self) -> Vec<mysql::Value> {
        let values = self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => value::param(value),
            // The builder makes arrays for PostgreSQL only.
            Bind::Array(_) => mysql::Value::NULL,
        });
        values.collect()
    }
}

/// Runs work in a [`MysqlConnection::read_tx`].
macro_rules! in_read_tx {
    ($data:expr, $timeout:expr, |$transaction:ident| $work:expr) => {{
        let mut opened = $data.read_tx($timeout).await?;
        let $transaction = &mut opened;
        let outcome = $work.await;
        release(opened, outcome).await
    }};
}
use in_read_tx;
