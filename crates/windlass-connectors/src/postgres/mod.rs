//! PostgreSQL: sets of rows in single statements, every transaction explicit, so that it works
//! behind a pooler that moves transactions between connections.

#[cfg(feature = "export")]
mod binary;
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
mod split;
mod write;

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
use windlass_drivers::{Class, Param, Postgres, Transaction};

/// A PostgreSQL database with records.
pub(crate) struct PostgresData {
    db: Postgres,
    /// The columns of tables that items insert into, which say how their values are cast.
    columns: Mutex<HashMap<String, Arc<Vec<Column>>>>,
    together: group_commit::GroupCommit,
    /// Hears when something comes into the outbox.
    ear: listener::Ear,
}

impl PostgresData {
    pub(crate) fn new(db: Postgres) -> PostgresData {
        let ear = outbox::ear(&db);
        PostgresData { db, columns: Mutex::default(), together: Default::default(), ear }
    }

    /// A transaction that looks at tables and at where their chunks end. Loading the compiler takes
    /// longer than any of its plans.
    async fn catalog_tx(&self) -> Result<Transaction> {
        let settings = format!("{}; SET LOCAL jit = off", reading(LOOKING));
        Ok(self.db.transaction(&settings).await?)
    }

    /// A transaction that reads a chunk.
    async fn reading_chunk(&self, scope: &Scope) -> Result<Transaction> {
        Ok(self.db.transaction(&reading_chunk(scope)).await?)
    }

    /// A transaction that writes for a job. Short time-outs keep a stalled worker from holding
    /// the user's rows.
    async fn write_tx(&self, scope: &Scope) -> Result<Transaction> {
        Ok(self.db.transaction(&write_tx(scope)).await?)
    }

    /// A transaction on the ledger alone.
    async fn ledger_tx(&self) -> Result<Transaction> {
        Ok(self.db.transaction(KEEPING).await?)
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

/// What a transaction that only reads begins with: one snapshot for all its statements. Dates are
/// written in the ISO form, and floats inside arrays and the like with all their digits; how the user's own conditions read dates is left as it is.
fn reading(timeout: Duration) -> String {
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

/// What a transaction that reads a chunk begins with. Chunks are read side by side, so the server
/// need not start processes of its own for each, which takes longer than they save.
fn reading_chunk(scope: &Scope) -> String {
    let reading = reading(scope.job_type.chunk.timeout);
    format!("{reading}; SET LOCAL max_parallel_workers_per_gather = 0")
}

/// Time-outs of the ledger's own statements, which touch a row each by its key.
const KEEPING: &str = "SET LOCAL statement_timeout = 60000; \
                       SET LOCAL idle_in_transaction_session_timeout = 60000";

/// The time-outs of a transaction that writes for a job.
fn write_tx(scope: &Scope) -> String {
    let chunk = &scope.job_type.chunk;
    format!(
        "SELECT set_config('statement_timeout', '{}', true), \
         set_config('idle_in_transaction_session_timeout', '{1}', true), \
         set_config('lock_timeout', '{1}', true)",
        milliseconds(chunk.timeout),
        milliseconds(chunk.lease),
    )
}

/// How long a look at the catalog or a walk through an index may take.
const LOOKING: Duration = Duration::from_secs(600);

/// How long a database may take to say how it is.
const MEASURING: Duration = Duration::from_secs(5);

/// Zero would mean no time-out at all, and more than fits would be refused.
fn milliseconds(timeout: Duration) -> i32 {
    i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1)
}

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

/// Ends a transaction that only read.
async fn release<T>(transaction: Transaction, outcome: Result<T>) -> Result<T> {
    let _ = transaction.rollback().await;
    outcome
}

impl Sql<'_> {
    /// The bound values as PostgreSQL takes them.
    fn params(&self) -> Vec<Param<'_>> {
        let params = self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => Param::from(value.to_text()),
            Bind::Array(array) => array.param(),
        });
        params.collect()
    }
}

/// Whether it is no use to ask whether something else went wrong.
fn is_passing(error: &DataError) -> bool {
    matches!(error.class(), Some(Class::Connection | Class::Retry | Class::Full))
}

/// Runs work in a transaction that looks.
macro_rules! in_catalog_tx {
    ($data:expr, |$transaction:ident| $work:expr) => {{
        let $transaction = $data.catalog_tx().await?;
        let outcome = $work.await;
        release($transaction, outcome).await
    }};
}

#[async_trait]
impl Source for PostgresData {
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Postgres, job_type)?)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        in_catalog_tx!(self, |transaction| describe::tables(&transaction))
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT (\n{}\n)::float8", inner(sql));
        let settings = format!(
            "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}",
            milliseconds(MEASURING)
        );
        let rows = self.db.single(&settings, &sql, &[]).await?;
        rows.first().map_or(Ok(None), |row| row::get(row, 0))
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        in_catalog_tx!(self, |transaction| describe::describe(&transaction, source))
    }

    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()> {
        in_catalog_tx!(self, |transaction| read::check_keys(&transaction, scope, most))
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        in_catalog_tx!(self, |transaction| split::split(&transaction, scope, segments))
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
        in_catalog_tx!(self, |transaction| cut::cut(&transaction, scope, within, page))
    }

    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        in_catalog_tx!(self, |transaction| cut::cut_values(
            &transaction,
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
        let settings = reading_chunk(scope);
        read::read(&self.db, &settings, scope, key_set, limit, bytes).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        in_catalog_tx!(self, |transaction| read::count(&transaction, scope, key_set))
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        in_catalog_tx!(self, |transaction| read::count_each(&transaction, scope, key_sets))
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        in_catalog_tx!(self, |transaction| read::distinct(&transaction, scope, columns, &rows))
    }
}

#[async_trait]
impl Target for PostgresData {
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
        let transaction = self.write_tx(scope).await?;
        let outcome = write::write(self, &transaction, scope, vec![item]).await;
        release(transaction, outcome.map(drop)).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        preview::preview(self, scope, key_set).await
    }
}

#[async_trait]
impl crate::Connection for PostgresData {
    fn outbox(&self) -> &dyn crate::Outbox {
        self
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self
    }

    async fn position(&self) -> Result<Option<i64>> {
        replication::position(self).await
    }

    async fn durability_risk(&self) -> Result<Option<String>> {
        replication::durability_risk(self).await
    }

    async fn standing(&self) -> Result<crate::Standing> {
        replication::standing(self).await
    }
}
