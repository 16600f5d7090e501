//! Creates the ledger's tables, and fences its rows.

use super::{SqliteConnection, failed, row};
use crate::ledger::missing_ledger;
use crate::{Fence, Fencing, Ledger, LedgerRow, LedgerSchema, Result};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use windlass_core::{ChunkId, JobId};

/// The statements that create the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/sqlite/ledger.sql");

#[async_trait]
impl LedgerSchema for SqliteConnection {
    async fn prepare(&self) -> Result<()> {
        if self.read(has_tables).await? {
            return Ok(());
        }
        let created =
            self.write(|transaction| transaction.execute_batch(LEDGER).map_err(failed)).await;
        match created {
            Err(error) if !error.is_retryable() => Err(missing_ledger(&error.to_string())),
            outcome => outcome,
        }
    }

    /// Whether a file can be written is known only by writing to it.
    async fn check_ledger(&self) -> Result<()> {
        Ok(())
    }

    fn ledger_ddl(&self) -> &'static str {
        LEDGER
    }
}

#[async_trait]
impl Fencing for SqliteConnection {
    async fn fence(&self, fences: &[Fence]) -> Result<Vec<Option<Ledger>>> {
        let fences = fences.to_vec();
        self.write(move |transaction| fence(transaction, &fences)).await
    }

    async fn fence_again(&self, ledger: &Ledger) -> Result<Option<Ledger>> {
        let ledger = ledger.clone();
        self.write(move |transaction| lock(transaction, &ledger)).await
    }

    async fn ledger_rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<LedgerRow>> {
        self.read(move |connection| rows(connection, job, after, limit)).await
    }
}

/// Raises several rows to their epochs, and returns them.
pub(super) fn fence(
    transaction: &Transaction<'_>,
    fences: &[Fence],
) -> Result<Vec<Option<Ledger>>> {
    let sql = include_str!("../../sql/sqlite/fence.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    let mut raised = Vec::with_capacity(fences.len());
    for fence in fences {
        let chunk = fence.chunk;
        let params =
            params![chunk.job.to_string(), chunk.number, fence.epoch, fence.lost, fence.nonce];
        let ledger = statement.query_row(params, |row| Ok(row::ledger(row, chunk)));
        raised.push(ledger.optional().map_err(failed)?.transpose()?);
    }
    Ok(raised)
}

/// Reads the row of a lease; `None` if the lease is lost.
pub(super) fn lock(transaction: &Transaction<'_>, own: &Ledger) -> Result<Option<Ledger>> {
    let sql = include_str!("../../sql/sqlite/lock.sql");
    let params = params![own.chunk.job.to_string(), own.chunk.number, own.epoch, own.nonce];
    let found = transaction.query_row(sql, params, |row| Ok(row::ledger(row, own.chunk)));
    found.optional().map_err(failed)?.transpose()
}

pub(super) fn has_tables(connection: &Connection) -> Result<bool> {
    // By a query, since `table_exists` may use an outdated schema of this connection.
    let sql = "SELECT count(*) = 4 FROM sqlite_master WHERE name IN \
               ('windlass_ledger', 'windlass_deferred', 'windlass_emitted', 'windlass_stores')";
    connection.query_row(sql, [], |row| row.get(0)).map_err(failed)
}

/// The ledger rows of a job's chunks after this one, with the counts of the rows next to them.
pub(super) fn rows(
    connection: &Connection,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<LedgerRow>> {
    let sql = include_str!("../../sql/sqlite/ledger_rows.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query(params![job.to_string(), after, limit]).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let number = |index| row.get::<_, i64>(index).map_err(failed);
        let chunk = ChunkId { job, number: number(14)? };
        found.push(LedgerRow {
            ledger: row::ledger(row, chunk)?,
            deferred: number(10)?,
            dead: number(11)?,
            emitted: number(12)?,
            emitted_rows: number(13)?,
        });
    }
    Ok(found)
}
