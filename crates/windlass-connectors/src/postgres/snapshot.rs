//! Reads under one snapshot: a transaction exports it and stays open, and every transaction of the job imports it.

use super::row::get;
use super::{PostgresConnection, describe, release};
use crate::row_count::select_all;
use crate::sql::{Dialect, quote_table};
use crate::{BlockCount, ConnectorError, HeldSnapshot, ReadSnapshot, Result, Scope};
use async_trait::async_trait;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use windlass_core::KeySet;
use windlass_core::problem::{Code, Problem};
use windlass_drivers::{Error, ErrorClass, Param, Postgres, Transaction};

/// The first version that scans a table by ranges of blocks.
const LEAST_VERSION: i32 = 140_000;
/// A holder that does not answer for this time is lost.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// A job is read by blocks if at least one row in this many matches its conditions.
const ROWS_PER_MATCH: u64 = 20;

/// How many snapshots a process may hold: at most half of its connections, so that the others can read.
pub(super) fn most_held(max_connections: usize) -> usize {
    max_connections / 2
}

/// The settings of the transaction that exports a snapshot. It is idle most of the time, and must not be ended for
/// that. The names are looked up, because older servers do not have all of them.
const HOLDER_SETTINGS: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; \
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN \
    ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')";

/// A snapshot that is held by its transaction.
struct Holder {
    transaction: Transaction,
    snapshot: ReadSnapshot,
    _permit: OwnedSemaphorePermit,
}

/// Takes a snapshot and holds it.
pub(super) async fn hold(
    connection: &PostgresConnection,
    scope: &Scope,
) -> Result<Option<Box<dyn HeldSnapshot>>> {
    check_capacity(connection)?;
    let Ok(permit) = connection.snapshots.clone().try_acquire_owned() else { return Ok(None) };
    let transaction = connection.db.transaction(HOLDER_SETTINGS).await?;
    match export(&transaction, scope).await {
        Ok(snapshot) => Ok(Some(Box::new(Holder { transaction, snapshot, _permit: permit }))),
        Err(error) => {
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// Exports the snapshot of a transaction. It does not lock the table: a statement that rewrites the table would wait for
/// this lock, the chunks to read would wait for that statement, and the job would not end.
async fn export(transaction: &Transaction, scope: &Scope) -> Result<ReadSnapshot> {
    check_version(transaction).await?;
    let name = get(&transaction.query_one("SELECT pg_export_snapshot()", &[]).await?, 0)?;
    let table = quoted_table(scope);
    let row = transaction.query_one(FINGERPRINT, &[Param::from(table.as_deref())]).await?;
    let (instant, file): (String, String) = (get(&row, 0)?, get(&row, 1)?);
    Ok(ReadSnapshot { name, fingerprint: format!("{instant}/{file}") })
}

/// Refuses a connection that cannot hold a snapshot.
pub(super) async fn check(connection: &PostgresConnection) -> Result<()> {
    check_capacity(connection)?;
    let transaction = connection.catalog_tx().await?;
    let checked = check_version(&transaction).await;
    release(transaction, checked).await
}

fn check_capacity(connection: &PostgresConnection) -> Result<()> {
    if most_held(connection.db.max_connections()) > 0 {
        return Ok(());
    }
    let detail = "is \"snapshot\", which needs one connection to hold the snapshot and others to read, besides \
                  the one that measures the lag of replicas; raise max_connections, or \"chunk\" would be right";
    Err(Problem::field(Code::Source, "source.consistency", detail).into())
}

/// Refuses a server that cannot read by blocks.
async fn check_version(transaction: &Transaction) -> Result<()> {
    let sql =
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')";
    let row = transaction.query_one(sql, &[]).await?;
    let (number, version): (i32, String) = (get(&row, 0)?, get(&row, 1)?);
    if number >= LEAST_VERSION {
        return Ok(());
    }
    let detail = format!(
        "is \"snapshot\", which needs PostgreSQL 14 or later; this server is {version}, so \"chunk\" would be \
         right"
    );
    Err(Problem::field(Code::Source, "source.consistency", detail).into())
}

#[async_trait]
impl HeldSnapshot for Holder {
    fn snapshot(&self) -> &ReadSnapshot {
        &self.snapshot
    }

    async fn check(&self) -> Result<()> {
        let asked = self.transaction.batch("SELECT 1");
        let Ok(answer) = tokio::time::timeout(CHECK_TIMEOUT, asked).await else {
            let message = format!("no answer for {CHECK_TIMEOUT:?}");
            return Err(Error::new(ErrorClass::Connection, message).into());
        };
        Ok(answer?)
    }

    async fn release(self: Box<Self>) {
        let _ = self.transaction.rollback().await;
    }
}

/// Begins a transaction with these settings, under the snapshot of the job if it has one.
pub(super) async fn begin(db: &Postgres, scope: &Scope, settings: &str) -> Result<Transaction> {
    let Some(snapshot) = &scope.read_snapshot else { return Ok(db.transaction(settings).await?) };
    let ReadSnapshot { name, fingerprint } = snapshot;
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
        return Err(ConnectorError::SnapshotLost(format!("`{name}` is no name of a snapshot")));
    }
    let (instant, file) = fingerprint.rsplit_once('/').unwrap_or((fingerprint, ""));
    let table = quoted_table(scope).filter(|_| !file.is_empty());
    // Locks the table until the transaction ends, so that it is not rewritten after the comparison.
    let lock = table.as_ref().map(|table| format!("; SELECT FROM {table} LIMIT 0"));
    let settings = format!(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '{name}'; \
         {settings}{}",
        lock.unwrap_or_default()
    );
    let params = [Param::from(table.as_deref())];
    let (transaction, rows) = match db.transaction_with(&settings, FINGERPRINT, &params).await {
        Err(error) if is_refused(&error) => {
            return Err(ConnectorError::SnapshotLost(error.to_string()));
        }
        begun => begun?,
    };
    let compared = match rows.first() {
        Some(row) => compare(instant, file, &get::<String>(row, 0)?, &get::<String>(row, 2)?),
        None => Ok(()),
    };
    match compared {
        Ok(()) => Ok(transaction),
        Err(error) => {
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// Compares a snapshot and the file of its table with what a transaction found.
fn compare(instant: &str, file: &str, found: &str, found_file: &str) -> Result<()> {
    if instant != found {
        let reason = "this server has another snapshot of the same name; it was restarted";
        return Err(ConnectorError::SnapshotLost(reason.to_owned()));
    }
    match file == found_file {
        true => Ok(()),
        false => Err(ConnectorError::TableRewritten),
    }
}

/// Whether an error says that a snapshot does not exist here, or that its transaction has ended.
fn is_refused(error: &Error) -> bool {
    matches!(error.code.as_deref(), Some("22023" | "42704" | "55000" | "0A000"))
}

/// Identifies a snapshot, and the files of the table ($1) that it and the server have.
const FINGERPRINT: &str = include_str!("../../sql/postgres/snapshot_fingerprint.sql");

/// The quoted table of the source. `None` if it is a query.
fn quoted_table(scope: &Scope) -> Option<String> {
    scope.job_type.source.table.as_deref().map(quote_table)
}

/// The blocks of the source's table, if its records should be read by blocks.
pub(super) async fn blocks(transaction: &Transaction, scope: &Scope) -> Result<Option<BlockCount>> {
    let Some(table) = quoted_table(scope) else { return Ok(None) };
    let sql = include_str!("../../sql/postgres/blocks.sql");
    let Some(row) = transaction.query_opt(sql, &[Param::from(&table)]).await? else {
        return Ok(None);
    };
    let blocks: i64 = get(&row, 0)?;
    let all = KeySet::range(None, None);
    let matching = select_all(Dialect::Postgres, scope, &all);
    let items = describe::planned_rows(transaction, &matching.text, &matching.params()).await?;
    let rows = scope.table.estimated_rows.max(items).max(1);
    if items.saturating_mul(ROWS_PER_MATCH) < rows {
        return Ok(None);
    }
    Ok(Some(BlockCount { blocks: blocks.unsigned_abs(), rows, items }))
}
