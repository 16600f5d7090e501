//! Deferred items and emitted rows, which are stored next to the ledger.

use super::{SqliteConnection, failed};
use crate::{
    DeferredItem, DeferredItems, DeferredPage, DeferredState, Emitted, EmittedCursor, Result,
};
use async_trait::async_trait;
use rusqlite::{Connection, Row, Transaction, params};
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};

#[async_trait]
impl DeferredItems for SqliteConnection {
    async fn deferred(&self, chunk: ChunkId, page: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        let DeferredPage { state, after, limit } = page;
        let after = after.unwrap_or_default().to_owned();
        self.read(move |connection| items(connection, chunk, state, &after, limit)).await
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        let after = after.clone();
        self.read(move |connection| emitted(connection, job, &after, limit)).await
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| discard_emitted(transaction, job)).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        self.write(move |transaction| prune(transaction, job)).await
    }
}

/// The deferred items of a chunk in one state.
pub(super) fn items(
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
    let mut items = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |index| row.get::<_, String>(index).map_err(failed);
        let number = |index| row.get::<_, u32>(index).map_err(failed);
        items.push(DeferredItem {
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
    Ok(items)
}

/// Stores deferred items, in the transaction of their commit.
pub(super) fn defer(
    transaction: &Transaction<'_>,
    chunk: ChunkId,
    deferred: &[DeferredItem],
) -> Result<()> {
    let sql = include_str!("../../sql/sqlite/defer.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for item in deferred {
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

/// Deletes deferred items that are processed, skipped or dead now, in the transaction of their commit.
pub(super) fn resolve(
    transaction: &Transaction<'_>,
    chunk: ChunkId,
    resolved: &[Key],
) -> Result<()> {
    let sql = include_str!("../../sql/sqlite/resolve.sql");
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for key in resolved {
        let params = params![chunk.job.to_string(), chunk.number, key.to_text()];
        statement.execute(params).map_err(failed)?;
    }
    Ok(())
}

/// The rows that a job emitted, after the cursor.
pub(super) fn emitted(
    connection: &Connection,
    job: JobId,
    after: &EmittedCursor,
    limit: u32,
) -> Result<Vec<Emitted>> {
    let sql = include_str!("../../sql/sqlite/emitted.sql");
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let params = params![job.to_string(), after.chunk, after.item_key, after.seq, limit];
    let emitted = |row: &Row<'_>| {
        let cursor = EmittedCursor { chunk: row.get(0)?, item_key: row.get(1)?, seq: row.get(2)? };
        Ok(Emitted { cursor, fields: row.get(3)? })
    };
    let rows = statement.query_map(params, emitted).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

/// Deletes everything of a job.
pub(super) fn prune(transaction: &Transaction<'_>, job: JobId) -> Result<u64> {
    let mut total = discard_emitted(transaction, job)?;
    for sql in [
        include_str!("../../sql/sqlite/prune_deferred.sql"),
        include_str!("../../sql/sqlite/prune_ledger.sql"),
    ] {
        total += transaction.execute(sql, [job.to_string()]).map_err(failed)? as u64;
    }
    Ok(total)
}

/// Deletes the rows that a job emitted.
pub(super) fn discard_emitted(transaction: &Transaction<'_>, job: JobId) -> Result<u64> {
    let sql = include_str!("../../sql/sqlite/prune_emitted.sql");
    Ok(transaction.execute(sql, [job.to_string()]).map_err(failed)? as u64)
}
