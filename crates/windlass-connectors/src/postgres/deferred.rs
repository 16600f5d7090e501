//! Deferred items and emitted rows, which are stored next to the ledger.

use super::row::get;
use super::{PostgresConnection, finish, release};
use crate::ledger::item_key;
use crate::{
    ConnectorError, DeferredItem, DeferredItems, DeferredPage, Emitted, EmittedCursor, Result,
};
use async_trait::async_trait;
use std::borrow::Cow;
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};
use windlass_drivers::{Param, Transaction};

#[async_trait]
impl DeferredItems for PostgresConnection {
    async fn deferred(&self, chunk: ChunkId, page: DeferredPage<'_>) -> Result<Vec<DeferredItem>> {
        let DeferredPage { state, after, limit } = page;
        let params = [
            Param::from(chunk.job),
            Param::from(chunk.number),
            Param::from(state.as_str()),
            Param::from(item_key(after.unwrap_or_default())),
            Param::from(limit),
        ];
        let transaction = self.ledger_tx().await?;
        let rows =
            transaction.query(include_str!("../../sql/postgres/deferred.sql"), &params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            items.push(DeferredItem {
                key: serde_json::from_str(get(row, 0)?)?,
                state,
                attempts: get::<i32>(row, 2)?.try_into().unwrap_or_default(),
                conflicts: get::<i32>(row, 3)?.try_into().unwrap_or_default(),
                error: get(row, 4)?,
                context: serde_json::from_str(get(row, 5)?)?,
                record: serde_json::from_str(get(row, 6)?)?,
                wait: Duration::from_millis(get::<i64>(row, 7)?.try_into().unwrap_or_default()),
            });
        }
        Ok(items)
    }

    async fn emitted(&self, job: JobId, after: &EmittedCursor, limit: u32) -> Result<Vec<Emitted>> {
        let params = [
            Param::from(job),
            Param::from(after.chunk),
            Param::from(after.item_key.as_str()),
            Param::from(after.seq),
            Param::from(limit),
        ];
        let transaction = self.ledger_tx().await?;
        let rows = transaction.query(include_str!("../../sql/postgres/emitted.sql"), &params).await;
        let rows = release(transaction, rows.map_err(ConnectorError::from)).await?;
        let emitted = |row| {
            let (chunk, item_key) = (get(row, 0)?, get(row, 1)?);
            let cursor = EmittedCursor { chunk, item_key, seq: get::<i32>(row, 2)?.into() };
            Ok(Emitted { cursor, fields: get(row, 3)? })
        };
        rows.iter().map(emitted).collect()
    }

    async fn discard_emitted(&self, job: JobId) -> Result<u64> {
        delete_in_batches(self, include_str!("../../sql/postgres/prune_emitted.sql"), job).await
    }

    async fn prune(&self, job: JobId) -> Result<u64> {
        let mut total = self.discard_emitted(job).await?;
        total +=
            delete_in_batches(self, include_str!("../../sql/postgres/prune_deferred.sql"), job)
                .await?;
        total += delete_in_batches(self, include_str!("../../sql/postgres/prune_ledger.sql"), job)
            .await?;
        Ok(total)
    }
}

/// Stores deferred items, in the transaction of their commit.
pub(super) async fn defer(
    transaction: &Transaction,
    chunk: ChunkId,
    deferred: &[DeferredItem],
) -> Result<()> {
    if deferred.is_empty() {
        return Ok(());
    }
    let column =
        |text: fn(&DeferredItem) -> String| deferred.iter().map(text).collect::<Vec<String>>();
    let number =
        |number: fn(&DeferredItem) -> i64| deferred.iter().map(number).collect::<Vec<i64>>();
    let texts = column(|item| item.key.to_text());
    let keys: Vec<Cow<'_, str>> = texts.iter().map(|text| item_key(text)).collect();
    let long = |(text, key): (&'_ String, &Cow<'_, str>)| (text != key).then(|| text.clone());
    let long_keys: Vec<Option<String>> = texts.iter().zip(&keys).map(long).collect();
    // PostgreSQL's text cannot contain a zero byte, and a message that does must not fail the chunk.
    let errors = column(|item| item.error.replace('\0', "\u{fffd}"));
    let contexts = column(|item| item.context.to_string());
    let records = column(|item| item.record.to_string());
    let params = [
        Param::from(chunk.job),
        Param::from(chunk.number),
        Param::texts(&keys),
        Param::nullable_texts(&long_keys),
        Param::Texts(deferred.iter().map(|item| Some(item.state.as_str())).collect()),
        Param::from(number(|item| item.attempts.into())),
        Param::from(number(|item| item.conflicts.into())),
        Param::texts(&errors),
        Param::texts(&contexts),
        Param::texts(&records),
        Param::from(number(|item| i64::try_from(item.wait.as_millis()).unwrap_or(i64::MAX))),
    ];
    transaction.execute(include_str!("../../sql/postgres/defer.sql"), &params).await?;
    Ok(())
}

/// Deletes deferred items that are processed, skipped or dead now, in the transaction of their commit.
pub(super) async fn resolve(
    transaction: &Transaction,
    chunk: ChunkId,
    resolved: &[Key],
) -> Result<()> {
    if resolved.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> =
        resolved.iter().map(|key| item_key(&key.to_text()).into_owned()).collect();
    let params = [Param::from(chunk.job), Param::from(chunk.number), Param::texts(&keys)];
    transaction.execute(include_str!("../../sql/postgres/resolve.sql"), &params).await?;
    Ok(())
}

async fn delete_in_batches(data: &PostgresConnection, sql: &str, job: JobId) -> Result<u64> {
    let mut total = 0;
    loop {
        let transaction = data.ledger_tx().await?;
        let deleted =
            transaction.execute(sql, &[Param::from(job), Param::from(DELETE_BATCH)]).await;
        let deleted = finish(transaction, deleted.map_err(ConnectorError::from)).await?;
        total += deleted;
        if deleted < DELETE_BATCH as u64 {
            return Ok(total);
        }
    }
}

/// The most rows that one transaction deletes.
const DELETE_BATCH: i64 = 50_000;
