//! MySQL and MariaDB: sets of rows in single statements, the rows that a commit may change locked
//! before it changes them.

mod cells;
mod commit;
mod cut;
mod deferred;
mod describe;
mod durability;
#[cfg(feature = "export")]
mod extract;
mod fan_in;
mod fence;
mod history;
mod outbox;
mod preview;
mod read;
mod replication;
mod row;
mod split;
mod value;
mod write;

pub(crate) use cells::Cells;
pub(crate) use value::{cast, compared};

use crate::sql::{Bind, Sql, inner};
use crate::{
    Batch, ChunkPage, Commit, Committed, DataError, DeferredItem, DeferredState, Emitted, Fence,
    Ledger, LedgerRow, Preview, Result, Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use windlass_core::{ChunkId, Column, FilterValue, JobId, KeyRange, KeySet, Table, Value};
use windlass_drivers::mysql::{self, Access, Transaction};
use windlass_drivers::{Class, Mysql};

/// A MySQL or MariaDB database with records.
pub(crate) struct MysqlData {
    db: Mysql,
    /// The columns of tables that items insert into, which say how their values are written.
    columns: Mutex<HashMap<String, Arc<Vec<Column>>>>,
}

impl MysqlData {
    pub(crate) fn new(db: Mysql) -> MysqlData {
        MysqlData { db, columns: Mutex::default() }
    }

    /// A transaction that only reads, on one snapshot for all its statements.
    async fn reading(&self, timeout: Duration) -> Result<Transaction> {
        Ok(self.db.begin(Access::Read, &variables(timeout, timeout)).await?)
    }

    /// A transaction that writes for a job. Short time-outs keep a stalled worker from holding
    /// the user's rows.
    async fn write_tx(&self, scope: &Scope) -> Result<Transaction> {
        let chunk = &scope.job_type.chunk;
        Ok(self.db.begin(Access::Write, &variables(chunk.timeout, chunk.lease)).await?)
    }

    /// A transaction on the ledger alone, whose statements touch a row each by its key. A worker
    /// that lost its lease may still hold one of the rows, for as long as its statement runs: that
    /// must not keep this process from everything else.
    async fn ledger_tx(&self) -> Result<Transaction> {
        Ok(self.db.begin(Access::Write, &variables(KEEPING, Duration::from_secs(5))).await?)
    }

    fn known_columns(&self, table: &str) -> Option<Arc<Vec<Column>>> {
        let known = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(table).cloned()
    }

    fn learn_columns(&self, table: &str, columns: Arc<Vec<Column>>) {
        let mut known = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(table.to_owned(), columns);
    }
}

/// The time-outs of a session: of a statement, and of waiting for a lock. MariaDB and MySQL have
/// different names for most of them, and each passes over the other's kind of comment. MySQL knows
/// none for a transaction that does nothing, and one for a connection that does.
fn variables(statement: Duration, lock: Duration) -> String {
    patient(statement, lock, lock.max(Duration::from_secs(30)))
}

/// The same, with how long a transaction may do nothing: so long one keeps its locks whose process
/// sleeps, or whose machine is gone.
fn patient(statement: Duration, lock: Duration, idle: Duration) -> String {
    let [statement, lock, idle] = [statement, lock, idle].map(|time| time.as_secs().max(1));
    format!(
        "innodb_lock_wait_timeout = {lock} \
         /*M! , max_statement_time = {statement}, idle_transaction_timeout = {idle} */ \
         /*!50708 , max_execution_time = {statement}000, wait_timeout = {idle} */"
    )
}

/// How long a statement on the ledger may take.
const KEEPING: Duration = Duration::from_secs(60);

/// How long a look at the catalog or a walk through an index may take.
const LOOKING: Duration = Duration::from_secs(600);

/// How long a database may take to say how it is.
const MEASURING: Duration = Duration::from_secs(5);

/// Ends a transaction by what became of its work: commits, or rolls back.
async fn finish<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    match outcome {
        Ok(value) => {
            transaction.commit().await?;
            Ok(value)
        }
        Err(error) => {
            // A rollback that fails closes the connection, which comes to the same; the first
            // error says more.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// Ends a transaction that only read, or is to leave nothing behind.
async fn release<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    let _ = transaction.rollback().await;
    outcome
}

impl Sql<'_> {
    /// The bound values as MySQL takes them.
    fn values(&self) -> Vec<mysql::Value> {
        let values = self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => value::param(value),
            // The builder makes arrays for PostgreSQL only.
            Bind::Array(_) => mysql::Value::NULL,
        });
        values.collect()
    }
}

/// Whether it is no use to ask whether something else went wrong.
fn is_passing(error: &DataError) -> bool {
    matches!(error.class(), Some(Class::Connection | Class::Retry | Class::Full))
}

/// Runs work in a transaction that only reads.
macro_rules! in_reading {
    ($data:expr, $timeout:expr, |$transaction:ident| $work:expr) => {{
        let mut opened = $data.reading($timeout).await?;
        let $transaction = &mut opened;
        let outcome = $work.await;
        release(opened, outcome).await
    }};
}

#[async_trait]
impl Source for MysqlData {
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Mysql, job_type)?)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        in_reading!(self, LOOKING, |transaction| describe::tables(transaction))
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT CAST((\n{}\n) AS DOUBLE)", inner(sql));
        in_reading!(self, MEASURING, |transaction| read::measure(transaction, &sql))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_reading!(self, LOOKING, |transaction| describe::describe(transaction, source))
    }

    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()> {
        in_reading!(self, LOOKING, |transaction| read::check_keys(transaction, scope, most))
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        in_reading!(self, LOOKING, |transaction| split::split(transaction, scope, segments))
    }

    async fn cut(
        &self,
        scope: &Scope,
        within: Option<&FilterValue>,
        range: &KeyRange,
        items: u32,
        most_chunks: u32,
        most_items: Option<u64>,
    ) -> Result<ChunkPage> {
        let page = crate::chunk_cutter::Page::new(within, range, items, most_chunks, most_items);
        in_reading!(self, LOOKING, |transaction| cut::cut(transaction, scope, within, page))
    }

    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        in_reading!(self, LOOKING, |transaction| cut::cut_values(
            transaction,
            scope,
            filter,
            values,
            items
        ))
    }

    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        let timeout = scope.job_type.chunk.timeout;
        in_reading!(self, timeout, |transaction| read::read(
            transaction,
            scope,
            key_set,
            limit,
            bytes
        ))
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        in_reading!(self, LOOKING, |transaction| read::count(transaction, scope, key_set))
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        in_reading!(self, LOOKING, |transaction| read::count_each(transaction, scope, key_sets))
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        in_reading!(self, LOOKING, |transaction| read::distinct(transaction, scope, columns, rows))
    }
}

#[async_trait]
impl Target for MysqlData {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    async fn check_ledger(&self) -> Result<()> {
        fence::check(self).await
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::LEDGER
    }

    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        fence::fence(self, fences).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        commit::commit(self, scope, ledger, commit).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()> {
        commit::mark(self, scope, ledger, key_set).await
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        deferred::held(self, chunk, state, after, limit).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        fence::rows(self, job, after, limit).await
    }

    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        deferred::emitted(self, job, after, limit).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        deferred::discard(self, job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        deferred::prune(self, job).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let mut transaction = self.write_tx(scope).await?;
        let outcome = write::write(self, &mut transaction, scope, vec![item]).await;
        release(transaction, outcome.map(drop)).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let mut transaction = self.write_tx(scope).await?;
        let outcome = preview::preview(&mut transaction, scope, key_set).await;
        release(transaction, outcome).await
    }
}

#[async_trait]
impl crate::Connection for MysqlData {
    fn outbox(&self) -> &dyn crate::Outbox {
        self
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        durability::risk(self).await
    }

    async fn standing(&self) -> Result<crate::Standing> {
        replication::standing(self).await
    }
}
