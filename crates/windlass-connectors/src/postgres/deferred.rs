//! Items that are held beside the ledger, and rows that are kept there.

use super::row::get;
use super::{PostgresData, finish, release};
use crate::ledger::item_key;
use crate::{DataError, DeferredItem, DeferredState, Emitted, Result};
use std::borrow::Cow;
use std::time::Duration;
use windlass_core::{ChunkId, JobId, Key};
use windlass_drivers::{Param, Transaction};

/// DeferredItem items of a chunk in one state.
pub(super) async fn held(
    data: &PostgresData,
    chunk: ChunkId,
    state: DeferredState,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<DeferredItem>> {
    let params = [
        Param::from(chunk.job),
        Param::from(chunk.number),
        Param::from(state.as_str()),
        Param::from(item_key(after.unwrap_or_default())),
        Param::from(limit),
    ];
    let transaction = data.ledger_tx().await?;
    let rows = transaction.query(include_str!("../../sql/postgres/deferred.sql"), &params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
    let mut held = Vec::with_capacity(rows.len());
    for row in &rows {
        held.push(DeferredItem {
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
    Ok(held)
}

/// Holds items, in the transaction of their commit.
pub(super) async fn hold(
    transaction: &Transaction,
    chunk: ChunkId,
    held: &[DeferredItem],
) -> Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    let column = |text: fn(&DeferredItem) -> String| held.iter().map(text).collect::<Vec<String>>();
    let number = |number: fn(&DeferredItem) -> i64| held.iter().map(number).collect::<Vec<i64>>();
    let texts = column(|held| held.key.to_text());
    let keys: Vec<Cow<'_, str>> = texts.iter().map(|text| item_key(text)).collect();
    let long = |(text, key): (&'_ String, &Cow<'_, str>)| (text != key).then(|| text.clone());
    let long_keys: Vec<Option<String>> = texts.iter().zip(&keys).map(long).collect();
    // PostgreSQL's text holds no zero byte, and a message that does is not worth a failed chunk.
    let errors = column(|held| held.error.replace('\0', "\u{fffd}"));
    let contexts = column(|held| held.context.to_string());
    let records = column(|held| held.record.to_string());
    let params = [
        Param::from(chunk.job),
        Param::from(chunk.number),
        Param::texts(&keys),
        Param::nullable_texts(&long_keys),
        Param::Texts(held.iter().map(|held| Some(held.state.as_str())).collect()),
        Param::from(number(|held| held.attempts.into())),
        Param::from(number(|held| held.conflicts.into())),
        Param::texts(&errors),
        Param::texts(&contexts),
        Param::texts(&records),
        Param::from(number(|held| i64::try_from(held.wait.as_millis()).unwrap_or(i64::MAX))),
    ];
    transaction.execute(include_str!("../../sql/postgres/defer.sql"), &params).await?;
    Ok(())
}

/// Forgets held items that came to an end, in the transaction of their commit.
pub(super) async fn settle(
    transaction: &Transaction,
    chunk: ChunkId,
    settled: &[Key],
) -> Result<()> {
    if settled.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> =
        settled.iter().map(|key| item_key(&key.to_text()).into_owned()).collect();
    let params = [Param::from(chunk.job), Param::from(chunk.number), Param::texts(&keys)];
    transaction.execute(include_str!("../../sql/postgres/resolve.sql"), &params).await?;
    Ok(())
}

/// The rows that a job emitted, after the given place.
pub(super) async fn emitted(
    data: &PostgresData,
    job: JobId,
    (chunk, key, place): &(i64, String, i64),
    limit: u32,
) -> Result<Vec<Emitted>> {
    let params = [
        Param::from(job),
        Param::from(*chunk),
        Param::from(key.as_str()),
        Param::from(*place),
        Param::from(limit),
    ];
    let transaction = data.ledger_tx().await?;
    let rows = transaction.query(include_str!("../../sql/postgres/emitted.sql"), &params).await;
    let rows = release(transaction, rows.map_err(DataError::from)).await?;
    let emitted = |row| {
        let place = (get(row, 0)?, get(row, 1)?, get::<i32>(row, 2)?.into());
        Ok(Emitted { place, fields: get(row, 3)? })
    };
    rows.iter().map(emitted).collect()
}

/// Forgets everything of a job, in bites: it may have emitted any number of rows.
pub(super) async fn prune(data: &PostgresData, job: JobId) -> Result<u64> {
    let mut gone = discard(data, job).await?;
    gone += bites(data, include_str!("../../sql/postgres/prune_deferred.sql"), job).await?;
    gone += bites(data, include_str!("../../sql/postgres/prune_ledger.sql"), job).await?;
    Ok(gone)
}

/// Removes what a job emitted.
pub(super) async fn discard(data: &PostgresData, job: JobId) -> Result<u64> {
    bites(data, include_str!("../../sql/postgres/prune_emitted.sql"), job).await
}

async fn bites(data: &PostgresData, sql: &str, job: JobId) -> Result<u64> {
    let mut gone = 0;
    loop {
        let transaction = data.ledger_tx().await?;
        let bite = transaction.execute(sql, &[Param::from(job), Param::from(DELETE_BATCH)]).await;
        let bite = finish(transaction, bite.map_err(DataError::from)).await?;
        gone += bite;
        if bite < DELETE_BATCH as u64 {
            return Ok(gone);
        }
    }
}

/// Rows that one transaction removes at most.
const DELETE_BATCH: i64 = 50_000;
