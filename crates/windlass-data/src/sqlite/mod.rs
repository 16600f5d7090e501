//! SQLite: one writer per file, so that every write transaction has the ledger to itself.

mod commit;
mod cut;
mod describe;
mod fan_in;
mod fence;
mod held;
mod history;
mod outbox;
mod preview;
mod read;
mod row;
mod split;
mod write;

use crate::page::Page;
use crate::sql::{Bind, Sql, inner};
use crate::{
    Batch, Commit, Committed, Cuts, DataError, Emitted, Fence, Held, HeldState, Ledger, LedgerRow,
    Preview, Result, Scope, Source, Target, WriteItem,
};
use async_trait::async_trait;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, Transaction};
use windlass_core::{ChunkId, Extent, FilterValue, JobId, KeyRange, Table, Value};
use windlass_db::{Class, Error, Sqlite};

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
        Ok(crate::confine::check(crate::sql::Dialect::Sqlite, job_type)?)
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
    ) -> Result<Cuts> {
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
    ) -> Result<Vec<Option<Cuts>>> {
        let (scope, filter, values) = (scope.clone(), filter.to_owned(), values.to_vec());
        self.read(move |connection| cut::cut_values(connection, &scope, &filter, &values, items))
            .await
    }

    async fn read(
        &self,
        scope: &Scope,
        extent: &Extent,
        limit: u32,
        bytes: usize,
    ) -> Result<Batch> {
        let (scope, extent) = (scope.clone(), extent.clone());
        self.read(move |connection| read::read(connection, &scope, &extent, limit, bytes)).await
    }

    async fn count(&self, scope: &Scope, extent: &Extent) -> Result<i64> {
        let (scope, extent) = (scope.clone(), extent.clone());
        self.read(move |connection| read::count(connection, &scope, &extent)).await
    }

    async fn count_each(&self, scope: &Scope, extents: &[Extent]) -> Result<Vec<i64>> {
        let (scope, extents) = (scope.clone(), extents.to_vec());
        self.read(move |connection| read::count_each(connection, &scope, &extents)).await
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

    /// Whether a file may be written, only writing tells.
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

    async fn mark(&self, scope: &Scope, ledger: &Ledger, extent: &Extent) -> Result<()> {
        let (scope, ledger, extent) = (scope.clone(), ledger.clone(), extent.clone());
        self.write(move |transaction| commit::mark(transaction, &scope, &ledger, &extent)).await
    }

    async fn held(
        &self,
        chunk: ChunkId,
        state: HeldState,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Held>> {
        let after = after.unwrap_or_default().to_owned();
        self.read(move |connection| held::held(connection, chunk, state, &after, limit)).await
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
        self.read(move |connection| held::emitted(connection, job, &after, limit)).await
    }

    async fn discard(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| held::discard(transaction, job)).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| held::prune(transaction, job)).await
    }

    async fn try_write(&self, scope: &Scope, item: WriteItem) -> Result<()> {
        let scope = scope.clone();
        self.write(move |transaction| preview::try_write(transaction, &scope, item)).await
    }

    async fn preview(&self, scope: &Scope, extent: &Extent) -> Result<Vec<Preview>> {
        let (scope, extent) = (scope.clone(), extent.clone());
        self.write(move |transaction| preview::preview(transaction, &scope, &extent)).await
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
