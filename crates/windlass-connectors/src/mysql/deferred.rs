//! Items that are held beside the ledger, and rows that are kept there.

use super::row::{int, text};
use super::{MysqlData, finish, release};
use crate::ledger::item_key;
use crate::{DataError, DeferredItem, DeferredState, Emitted, Result};
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};
use windlass_drivers::mysql::{Transaction, Value};

/// DeferredItem items of a chunk in one state.
pub(super) async fn held(
    data: &MysqlData,
    chunk: ChunkId,
    state: DeferredState,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<DeferredItem>> {
    let params = vec![
        chunk.job.to_string().into(),
        chunk.number.into(),
        state.as_str().into(),
        item_key(after.unwrap_or_default()).into_owned().into(),
        limit.into(),
    ];
    let mut transaction = data.ledger_tx().await?;
    let rows = transaction.query(include_str!("../../sql/mysql/deferred.sql"), params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
    let mut held = Vec::with_capacity(rows.len());
    for row in &rows {
        held.push(DeferredItem {
            key: serde_json::from_str(&text(row, 0)?)?,
            state,
            attempts: int(row, 1)?.try_into().unwrap_or_default(),
            conflicts: int(row, 2)?.try_into().unwrap_or_default(),
            error: text(row, 3)?,
            context: serde_json::from_str(&text(row, 4)?)?,
            record: serde_json::from_str(&text(row, 5)?)?,
            wait: Duration::from_millis(int(row, 6)?.try_into().unwrap_or_default()),
        });
    }
    Ok(held)
}

/// Holds items, in the transaction of their commit.
pub(super) async fn hold(
    transaction: &mut Transaction,
    chunk: ChunkId,
    held: &[DeferredItem],
) -> Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    let row = |held: &DeferredItem| {
        let text = held.key.to_text();
        let key = item_key(&text);
        serde_json::json!([
            key,
            held.state.as_str(),
            held.attempts,
            held.conflicts,
            held.error,
            held.context.to_string(),
            held.record.to_string(),
            i64::try_from(held.wait.as_millis()).unwrap_or(i64::MAX / 2),
            (key != text).then_some(&text),
        ])
    };
    let rows = serde_json::Value::Array(held.iter().map(row).collect());
    let params = vec![chunk.job.to_string().into(), chunk.number.into(), rows.to_string().into()];
    transaction.execute(include_str!("../../sql/mysql/defer.sql"), params).await?;
    Ok(())
}

/// Forgets held items that came to an end, in the transaction of their commit.
pub(super) async fn settle(
    transaction: &mut Transaction,
    chunk: ChunkId,
    settled: &[Key],
) -> Result<()> {
    if settled.is_empty() {
        return Ok(());
    }
    let keys: serde_json::Value =
        settled.iter().map(|key| item_key(&key.to_text()).into_owned()).collect();
    let params = vec![keys.to_string().into(), chunk.job.to_string().into(), chunk.number.into()];
    transaction.execute(include_str!("../../sql/mysql/resolve.sql"), params).await?;
    Ok(())
}

/// The rows that a job emitted, after the given place.
pub(super) async fn emitted(
    data: &MysqlData,
    job: JobId,
    (chunk, key, place): &(i64, String, i64),
    limit: u32,
) -> Result<Vec<Emitted>> {
    let (chunk, key, place) = (Value::from(*chunk), Value::from(key), Value::from(*place));
    let after = [chunk.clone(), chunk.clone(), chunk, key.clone(), key.clone(), key, place];
    let mut params = vec![Value::from(job.to_string())];
    params.extend(after);
    params.push(limit.into());
    let mut transaction = data.ledger_tx().await?;
    let rows = transaction.query(include_str!("../../sql/mysql/emitted.sql"), params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
    let emitted = |row| {
        let place = (int(row, 0)?, text(row, 1)?, int(row, 2)?);
        Ok(Emitted { place, fields: text(row, 3)? })
    };
    rows.iter().map(emitted).collect()
}

/// Forgets everything of a job, in bites: it may have emitted any number of rows.
pub(super) async fn prune(data: &MysqlData, job: JobId) -> Result<u64> {
    let mut gone = discard(data, job).await?;
    gone += bites(data, include_str!("../../sql/mysql/prune_deferred.sql"), job).await?;
    gone += bites(data, include_str!("../../sql/mysql/prune_ledger.sql"), job).await?;
    Ok(gone)
}

/// Removes what a job emitted.
pub(super) async fn discard(data: &MysqlData, job: JobId) -> Result<u64> {
    bites(data, include_str!("../../sql/mysql/prune_emitted.sql"), job).await
}

async fn bites(data: &MysqlData, sql: &str, job: JobId) -> Result<u64> {
    let mut gone = 0;
    loop {
        let mut transaction = data.ledger_tx().await?;
        let params = vec![job.to_string().into(), DELETE_BATCH.into()];
        let bite = transaction.execute(sql, params).await;
        let bite = finish(transaction, bite.map_err(DataError::from)).await?;
        gone += bite;
        if bite < DELETE_BATCH {
            return Ok(gone);
        }
    }
}

/// Rows that one transaction removes at most.
const DELETE_BATCH: u64 = 20_000;
