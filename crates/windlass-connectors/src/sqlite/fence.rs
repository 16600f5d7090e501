//! The ledger's tables, and raising its rows to an epoch.

use super::{SqliteData, failed, row};
use crate::{DataError, Fence, Ledger, LedgerRow, Result};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use windlass_core::problem::Code;
use windlass_core::{ChunkId, JobId, Problem};
use windlass_drivers::Class;

/// The statements that make the ledger.
pub(super) const LEDGER: &str = include_str!("../../sql/sqlite/ledger.sql");

/// Makes the tables where they are missing.
pub(super) async fn prepare(data: &SqliteData) -> Result<()> {
    if data.read(is_there).await? {
        return Ok(());
    }
    let made = data.write(|transaction| transaction.execute_batch(LEDGER).map_err(failed)).await;
    match made {
        Err(DataError::Database(error))
            if !matches!(error.class, Class::Connection | Class::Retry | Class::Full) =>
        {
            let detail = format!(
                "the ledger's tables are missing and cannot be made: {error}; \
                 run `windlass migrate --print` and have them created"
            );
            Err(Problem::new(Code::Ledger, detail).into())
        }
        outcome => outcome,
    }
}

/// Raises several rows, and reads them.
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

pub(super) fn is_there(connection: &Connection) -> Result<bool> {
    // By a statement: `table_exists` answers from the schema as this connection last read it.
    let sql = "SELECT count(*) = 4 FROM sqlite_master WHERE name IN \
               ('windlass_ledger', 'windlass_deferred', 'windlass_emitted', 'windlass_stores')";
    connection.query_row(sql, [], |row| row.get(0)).map_err(failed)
}

/// The rows of a job's chunks after this one, with what is kept beside them.
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
        let number = |place| row.get::<_, i64>(place).map_err(failed);
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
