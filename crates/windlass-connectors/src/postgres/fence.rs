//! The ledger's tables, and raising its rows to an epoch.

use super::row::{get, ledger};
use super::{KEEPING, PostgresData, finish, is_passing, release};
use crate::{DataError, Fence, Ledger, LedgerRow, Result};
use std::collections::HashMap;
use windlass_core::problem::Code;
use windlass_core::{JobId, Problem};
use windlass_drivers::{Param, Transaction};

/// The statements that make the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/postgres/ledger.sql");

/// Makes the tables where they are missing. When they are there, no privilege to make them is
/// needed.
pub(super) async fn prepare(data: &PostgresData) -> Result<()> {
    if is_made(data).await? {
        return Ok(());
    }
    match create(data, LEDGER).await {
        Err(error) if !is_passing(&error) => Err(missing(&error.to_string())),
        outcome => outcome,
    }
}

/// Whether the tables are there or may be made, without making them.
pub(super) async fn check(data: &PostgresData) -> Result<()> {
    let transaction = data.ledger_tx().await?;
    let checked = async {
        let may = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
        Ok(is_there(&transaction).await? || get(&transaction.query_one(may, &[]).await?, 0)?)
    };
    let checked = checked.await;
    match release(transaction, checked).await? {
        true => Ok(()),
        false => Err(missing("this user may create no table in the schema")),
    }
}

fn missing(why: &str) -> DataError {
    let detail = format!(
        "the ledger's tables are missing and cannot be made: {why}; \
         run `windlass migrate --print` and have them created"
    );
    Problem::new(Code::Ledger, detail).into()
}

/// Raises several rows at once, and reads them.
pub(super) async fn fence(data: &PostgresData, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
    if fences.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: Vec<_> = fences.iter().map(|fence| fence.chunk.job).collect();
    let chunks: Vec<_> = fences.iter().map(|fence| fence.chunk.number).collect();
    let epochs: Vec<_> = fences.iter().map(|fence| fence.epoch).collect();
    let lost: Vec<_> = fences.iter().map(|fence| fence.lost).collect();
    let nonces: Vec<_> = fences.iter().map(|fence| fence.nonce).collect();
    let params = [jobs.into(), chunks.into(), epochs.into(), lost.into(), nonces.into()];
    let sql = include_str!("../../sql/postgres/fence.sql");
    // A worker that lost its lease may still hold one of the rows, for as long as its statement
    // runs: that must not keep this process from everything else.
    let settings = format!("{KEEPING}; SET LOCAL lock_timeout = '5s'");
    let rows = data.db.single(&settings, sql, &params).await?;
    let mut raised = HashMap::new();
    for row in &rows {
        let row = ledger(row)?;
        raised.insert(row.chunk, row);
    }
    Ok(fences.iter().map(|fence| raised.remove(&fence.chunk)).collect())
}

/// Whether the tables are there.
pub(super) async fn is_made(data: &PostgresData) -> Result<bool> {
    let transaction = data.ledger_tx().await?;
    let there = is_there(&transaction).await;
    release(transaction, there).await
}

async fn is_there(transaction: &Transaction) -> Result<bool> {
    let sql = "SELECT to_regclass('windlass_ledger') IS NOT NULL \
               AND to_regclass('windlass_deferred') IS NOT NULL \
               AND to_regclass('windlass_emitted') IS NOT NULL \
               AND to_regclass('windlass_stores') IS NOT NULL";
    get(&transaction.query_one(sql, &[]).await?, 0)
}

/// Runs statements that make tables.
pub(super) async fn create(data: &PostgresData, ddl: &str) -> Result<()> {
    let transaction = data.db.transaction(KEEPING).await?;
    let outcome = async {
        // Two processes that create at once would meet in the catalog's unique indexes.
        let lock = Param::from(LOCK);
        transaction.query("SELECT pg_advisory_xact_lock($1)", &[lock]).await?;
        transaction.batch(ddl).await
    };
    let outcome = outcome.await;
    finish(transaction, outcome.map_err(DataError::from)).await
}

/// `windlass` in the letters' codes.
const LOCK: i64 = 0x7769_6e64_6c61_7373;

/// The rows of a job's chunks after this one, with what is kept beside them.
pub(super) async fn rows(
    data: &PostgresData,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<LedgerRow>> {
    let params = [Param::from(job), Param::from(after), Param::from(limit)];
    let transaction = data.ledger_tx().await?;
    let sql = include_str!("../../sql/postgres/ledger_rows.sql");
    let rows = transaction.query(sql, &params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
    let row = |row| {
        Ok(LedgerRow {
            ledger: ledger(row)?,
            deferred: get(row, 12)?,
            dead: get(row, 13)?,
            emitted: get(row, 14)?,
            emitted_rows: get(row, 15)?,
        })
    };
    rows.iter().map(row).collect()
}
