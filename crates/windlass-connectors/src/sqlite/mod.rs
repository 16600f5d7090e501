//! SQLite: one writer per file, so that every write transaction has the ledger to itself.

mod commit;
mod cut;
mod deferred;
mod describe;
mod fan_in;
mod fence;
mod history;
mod outbox;
mod preview;
mod read;
mod row;
mod split;
mod write;

use crate::chunk_cutter::Page;
use crate::sql::{Bind, Sql, inner};
use crate::{
    Batch, ChunkPage, Commit, Committed, DataError, DeferredItem, DeferredState, Emitted, Fence,
    Ledger, LedgerRow, Preview, Result, Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, Transaction};
use windlass_core::{ChunkId, FilterValue, JobId, KeyRange, KeySet, Table, Value};
use windlass_drivers::{Class, Error, Sqlite};

/// A SQLite file with records.
pub(crate) struct SqliteData {
    db: Sqlite,
}

impl SqliteData {
    pub(crate) fn new(db: Sqlite) -> SqliteData {
        SqliteData { db }
    }

    /// Runs work that reads, on one snapshot.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.db.read(move |connection| keep(work(connection))).await?
    }

    /// Runs work in a write transaction, which is rolled back when the work gives an error.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, refused) = std::sync::mpsc::channel();
        let outcome = self.db.write(move |transaction| {
            work(transaction).map_err(|error| match error {
                DataError::Database(error) => error,
                other => {
                    // The transaction rolls back for any error; ours goes beside it.
                    let stand_in = Error::new(Class::Other, other.to_string());
                    let _ = sender.send(other);
                    stand_in
                }
            })
        });
        match outcome.await {
            Ok(value) => Ok(value),
            Err(error) => Err(refused.try_recv().unwrap_or(DataError::Database(error))),
        }
    }
}

/// A read has nothing to roll back, so its error is a value like any other.
#[allow(clippy::result_large_err, reason = "it is unwrapped by the caller at once")]
fn keep<T>(outcome: Result<T>) -> std::result::Result<Result<T>, Error> {
    Ok(outcome)
}

/// A failure of SQLite as ours.
fn failed(error: rusqlite::Error) -> DataError {
    DataError::Database(error.into())
}

/// A value as SQLite takes it: it has no booleans, and JSON is text.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer((*value).into())),
            Value::Int(value) => ToSqlOutput::Borrowed(ValueRef::Integer(*value)),
            Value::Float(value) => ToSqlOutput::Borrowed(ValueRef::Real(*value)),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Json(json) => ToSqlOutput::Owned(json.to_string().into()),
        })
    }
}

impl Sql<'_> {
    /// The bound values as SQLite takes them.
    fn bound(&self) -> impl Iterator<Item = Bound<'_>> {
        self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => Bound(value),
            // The builder makes arrays for PostgreSQL only.
            Bind::Array(_) => Bound(&Value::Null),
        })
    }
}

#[async_trait]
impl Source for SqliteData {
    fn check_statement(&self, job_type: &windlass_core::JobType) -> Result<()> {
        Ok(crate::chunk_binding::check(crate::sql::Dialect::Sqlite, job_type)?)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        self.read(describe::tables).await
    }

    async fn measure(&self, sql: &str) -> Result<Option<f64>> {
        let sql = format!("SELECT CAST((\n{}\n) AS REAL)", inner(sql));
        self.read(move |connection| {
            connection.query_row(&sql, [], |row| row.get(0)).map_err(failed)
        })
        .await
    }

    async fn describe(&self, source: &windlass_core::Source) -> Result<Table> {
        let source = source.clone();
        self.read(move |connection| describe::describe(connection, &source)).await
    }

    async fn check_keys(&self, scope: &Scope, most: Option<u64>) -> Result<()> {
        let scope = scope.clone();
        self.read(move |connection| read::check_keys(connection, &scope, most)).await
    }

    async fn split(&self, scope: &Scope, segments: u32) -> Result<Vec<KeyRange>> {
        let scope = scope.clone();
        self.read(move |connection| split::split(connection, &scope, segments)).await
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
        let page = Page::new(within, range, items, most_chunks, most_items);
        let (scope, within) = (scope.clone(), within.cloned());
        self.read(move |connection| cut::cut(connection, &scope, within.as_ref(), page)).await
    }

    async fn cut_values(
        &self,
        scope: &Scope,
        filter: &str,
        values: &[Value],
        items: u32,
    ) -> Result<Vec<Option<ChunkPage>>> {
        let (scope, filter, values) = (scope.clone(), filter.to_owned(), values.to_vec());
        self.read(move |connection| cut::cut_values(connection, &scope, &filter, &values, items))
            .await
    }

    async fn read(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.read(move |connection| read::read(connection, &scope, &key_set, limit, bytes)).await
    }

    async fn count(&self, scope: &Scope, key_set: &KeySet) -> Result<i64> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.read(move |connection| read::count(connection, &scope, &key_set)).await
    }

    async fn count_each(&self, scope: &Scope, key_sets: &[KeySet]) -> Result<Vec<i64>> {
        let (scope, key_sets) = (scope.clone(), key_sets.to_vec());
        self.read(move |connection| read::count_each(connection, &scope, &key_sets)).await
    }

    async fn distinct(
        &self,
        scope: &Scope,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>> {
        let (scope, columns) = (scope.clone(), columns.to_vec());
        self.read(move |connection| read::distinct(connection, &scope, &columns, rows)).await
    }
}

#[async_trait]
impl Target for SqliteData {
    async fn prepare(&self) -> Result<()> {
        fence::prepare(self).await
    }

    /// Whether a file may be written, only write_tx tells.
    async fn check_ledger(&self) -> Result<()> {
        Ok(())
    }

    fn ledger_ddl(&self) -> &'static str {
        fence::LEDGER
    }

    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let fences = fences.to_vec();
        self.write(move |transaction| fence::fence(transaction, &fences)).await
    }

    async fn commit(&self, scope: &Scope, ledger: &Ledger, commit: Commit) -> Result<Committed> {
        let (scope, ledger) = (scope.clone(), ledger.clone());
        self.write(move |transaction| commit::commit(transaction, &scope, &ledger, commit)).await
    }

    async fn mark(&self, scope: &Scope, ledger: &Ledger, key_set: &KeySet) -> Result<()> {
        let (scope, ledger, key_set) = (scope.clone(), ledger.clone(), key_set.clone());
        self.write(move |transaction| commit::mark(transaction, &scope, &ledger, &key_set)).await
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: DeferredState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeferredItem>> {
        let after = after.unwrap_or_default().to_owned();
        self.read(move |connection| deferred::held(connection, chunk, state, &after, limit)).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        self.read(move |connection| fence::rows(connection, job, after, limit)).await
    }

    async fn emitted(
        &self,
        job: JobId,
        after: &(i64, String, i64),
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        let after = after.clone();
        self.read(move |connection| deferred::emitted(connection, job, &after, limit)).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| deferred::discard(transaction, job)).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| deferred::prune(transaction, job)).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let scope = scope.clone();
        self.write(move |transaction| preview::try_write(transaction, &scope, item)).await
    }

    async fn preview(&self, scope: &Scope, key_set: &KeySet) -> Result<Vec<Preview>> {
        let (scope, key_set) = (scope.clone(), key_set.clone());
        self.write(move |transaction| preview::preview(transaction, &scope, &key_set)).await
    }
}

impl crate::Connection for SqliteData {
    fn outbox(&self) -> &dyn crate::Outbox {
        self
    }

    fn history(&self) -> &dyn crate::LedgerHistory {
        self
    }
}
