//! Deferred items and emitted rows, which are stored next to the ledger.

use super::row::{int, text};
use super::{MysqlConnection, finish, release};
use crate::ledger::item_key;
use crate::{
    ConnectorError, DeferredItem, DeferredItems, DeferredPage, Emitted, EmittedCursor, Result,
};
use async_trait::async_trait;
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};
use windlass_drivers::mysql::{Transaction, Value};

#[async_trait]
impl DeferredItems for MysqlConnection {
    async fn deferred(&self, chunk: ChunkId, page: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        let DeferredPage { state, after, limit } = page;
        let params = vec![
            chunk.job.to_string().into(),
            chunk.number.into(),
            state.as_str().into(),
            item_key(after.unwrap_or_default()).into_owned().into(),
            limit.into(),
        ];
        let mut transaction = self.ledger_tx().await?;
        let rows = transaction.query(include_str!("../../sql/mysql/deferred.sql"), params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            items.push(DeferredItem {
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
        Ok(items)
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        let (chunk, key) = (Value::from(after.chunk), Value::from(&after.item_key));
        let cursor =
            [chunk.clone(), chunk.clone(), chunk, key.clone(), key.clone(), key, after.seq.into()];
        let mut params = vec![Value::from(job.to_string())];
        params.extend(cursor);
        params.push(limit.into());
        let mut transaction = self.ledger_tx().await?;
        let rows = transaction.query(include_str!("../../sql/mysql/emitted.sql"), params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let emitted = |row| {
            let cursor =
                EmittedCursor { chunk: int(row, 0)?, item_key: text(row, 1)?, seq: int(row, 2)? };
            Ok(Emitted { cursor, fields: text(row, 3)? })
        };
        rows.iter().map(emitted).collect()
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        delete_in_batches(self, include_str!("../../sql/mysql/prune_emitted.sql"), job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        let mut total = self.discard_emitted(job).await?;
        total += delete_in_batches(self, include_str!("../../sql/mysql/prune_deferred.sql"), job)
            .await?;
        total +=
            delete_in_batches(self, include_str!("../../sql/mysql/prune_ledger.sql"), job).await?;
        Ok(total)
    }
}

/// Stores deferred items, in the transaction of their commit.
pub(super) async fn defer(
    transaction: &mut Transaction,
    chunk: ChunkId,
    deferred: &[DeferredItem],
) -> Result<()> {
    if deferred.is_empty() {
        return Ok(());
    }
    let row = |item: &DeferredItem| {
        let text = item.key.to_text();
        let key = item_key(&text);
        serde_json::json!([
            key,
            item.state.as_str(),
            item.attempts,
            item.conflicts,
            item.error,
            item.context.to_string(),
            item.record.to_string(),
            i64::try_from(item.wait.as_millis()).unwrap_or(i64::MAX / 2),
            (key != text).then_some(&text),
        ])
    };
    let rows = serde_json::Value::Array(deferred.iter().map(row).collect());
    let params = vec![chunk.job.to_string().into(), chunk.number.into(), rows.to_string().into()];
    transaction.execute(include_str!("../../sql/mysql/defer.sql"), params).await?;
    Ok(())
}

/// Deletes deferred items that are processed, skipped or dead now, in the transaction of their commit.
pub(super) async fn resolve(
    transaction: &mut Transaction,
    chunk: ChunkId,
    resolved: &[Key],
) -> Result<()> {
    if resolved.is_empty() {
        return Ok(());
    }
    let keys: serde_json::Value =
        resolved.iter().map(|key| item_key(&key.to_text()).into_owned()).collect();
    let params = vec![keys.to_string().into(), chunk.job.to_string().into(), chunk.number.into()];
    transaction.execute(include_str!("../../sql/mysql/resolve.sql"), params).await?;
    Ok(())
}

async fn delete_in_batches(data: &MysqlConnection, sql: &str, job: JobId) -> Result<u64> {
    let mut total = 0;
    loop {
        let mut transaction = data.ledger_tx().await?;
        let params = vec![job.to_string().into(), DELETE_BATCH.into()];
        let deleted = transaction.execute(sql, params).await;
        let deleted = finish(transaction, deleted.map_err(ConnectorError::from)).await?;
        total += deleted;
        if deleted < DELETE_BATCH {
            return Ok(total);
        }
    }
}

/// The most rows that one transaction deletes.
const DELETE_BATCH: u64 = 20_000;
