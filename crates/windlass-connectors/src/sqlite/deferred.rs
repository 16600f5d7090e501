//! Items that are held beside the ledger, and rows that are kept there.

use super::failed;
use crate::{DeferredItem, DeferredState, Emitted, Result};
use rusqlite::{Connection, Row, Transaction, params};
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};

/// DeferredItem items of a chunk in one state.
pub(super) fn held(
    connection: &Connection,
    chunk: ChunkId,
    state: DeferredState,
    after: &str,
    limit: u32,
) -> Result<Vec<DeferredItem>> {
    let sql = include_str!("../../sql/sqlite/deferred.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let params = params![chunk.job.to_string(), chunk.number, state.as_str(), after, limit];
    let mut rows = statement.query(params).map_err(failed)?;
    let mut held = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |place| row.get::<_, String>(place).map_err(failed);
        let number = |place| row.get::<_, u32>(place).map_err(failed);
        held.push(DeferredItem {
            key: serde_json::from_str(&text(0)?)?,
            state,
            attempts: number(2)?,
            conflicts: number(3)?,
            error: text(4)?,
            context: serde_json::from_str(&text(5)?)?,
            record: serde_json::from_str(&text(6)?)?,
            wait: Duration::from_millis(row.get::<_, i64>(7).map_err(failed)?.unsigned_abs()),
        });
    }
    Ok(held)
}

/// Holds items, in the transaction of their commit.
pub(super) fn hold(
    transaction: &Transaction<'_>,
    chunk: ChunkId,
    held: &[DeferredItem],
) -> Result<()> {
    let sql = include_str!("../../sql/sqlite/defer.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for item in held {
        let params = params![
            chunk.job.to_string(),
            chunk.number,
            item.key.to_text(),
            item.state.as_str(),
            item.attempts,
            item.conflicts,
            item.error,
            item.context.to_string(),
            item.record.to_string(),
            i64::try_from(item.wait.as_millis()).unwrap_or(i64::MAX / 2),
        ];
        statement.execute(params).map_err(failed)?;
    }
    Ok(())
}

/// Forgets held items that came to an end, in the transaction of their commit.
pub(super) fn settle(transaction: &Transaction<'_>, chunk: ChunkId, settled: &[Key]) -> Result<()> {
    let sql = include_str!("../../sql/sqlite/resolve.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for key in settled {
        let params = params![chunk.job.to_string(), chunk.number, key.to_text()];
        statement.execute(params).map_err(failed)?;
    }
    Ok(())
}

/// The rows that a job emitted, after the given place.
pub(super) fn emitted(
    connection: &Connection,
    job: JobId,
    (chunk, key, place): &(i64, String, i64),
    limit: u32,
) -> Result<Vec<Emitted>> {
    let sql = include_str!("../../sql/sqlite/emitted.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let params = params![job.to_string(), chunk, key, place, limit];
    let emitted = |row: &Row<'_>| {
        let place = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Emitted { place, fields: row.get(3)? })
    };
    let rows = statement.query_map(params, emitted).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

/// Forgets everything of a job.
pub(super) fn prune(transaction: &Transaction<'_>, job: JobId) -> Result<u64> {
    let mut gone = discard(transaction, job)?;
    for sql in [
        include_str!("../../sql/sqlite/prune_deferred.sql"),
        include_str!("../../sql/sqlite/prune_ledger.sql"),
    ] {
        gone += transaction.execute(sql, [job.to_string()]).map_err(failed)? as u64;
    }
    Ok(gone)
}

/// Removes what a job emitted.
pub(super) fn discard(transaction: &Transaction<'_>, job: JobId) -> Result<u64> {
    let sql = include_str!("../../sql/sqlite/prune_emitted.sql");
    Ok(transaction.execute(sql, [job.to_string()]).map_err(failed)? as u64)
}
