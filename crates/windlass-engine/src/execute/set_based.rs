//! `sql` and `refresh`: one set-based statement per commit, halved down to the row that fails.

use crate::execute::chunk_runner::{Chunk, StopReason};
use windlass_connectors::{
    Commit, ConnectorError, CutLimits, CutRange, DeferredItem, DeferredState, Effect, ReadLimits,
};
use windlass_core::{Counts, Cursor, KeySet, Keys};
use windlass_drivers::ErrorClass;

/// Commits the next batch. When the database refuses a value in it, nothing is kept of the
/// attempt and the next batch is half as large; a batch of one row that fails is a dead letter.
/// After a success batches grow again, so one bad row among a thousand costs some twenty commits.
pub(crate) async fn run_batch(chunk: &mut Chunk, rest: KeySet) -> Result<(), StopReason> {
    let (batch, cursor, items) = next_batch(chunk, rest).await?;
    // Most statements touch every row that was there when the chunk was cut.
    let counts = Counts { read: items, processed: items, ..Counts::default() };
    let effect = Effect::Statement(batch.clone());
    let statement = Commit { counts, ..Commit::new(cursor.clone(), effect) };
    match chunk.commit(statement).await {
        Ok(()) => {
            let full = chunk.job.commit_items();
            chunk.size = chunk.size.saturating_mul(2).min(full);
            Ok(())
        }
        Err(error) if error.class() != Some(ErrorClass::Data) => Err(error.into()),
        Err(_) if chunk.size > 1 => {
            let items = u32::try_from(chunk.claimed.items).unwrap_or(u32::MAX).max(2);
            chunk.size = chunk.size.min(items) / 2;
            Ok(())
        }
        Err(error) => set_aside(chunk, batch, cursor, error).await,
    }
}

/// The next batch, the cursor after it, and how many items it is expected to have. The whole rest where a commit may be as large as the
/// chunk: that needs no look at the keys.
async fn next_batch(chunk: &Chunk, rest: KeySet) -> Result<(KeySet, Cursor, i64), StopReason> {
    match &rest.keys {
        Keys::List(keys) => {
            let done = match chunk.ledger.cursor {
                Cursor::Index(done) => done,
                _ => 0,
            };
            let batch = keys.iter().take(chunk.size as usize).cloned().collect::<Vec<_>>();
            let cursor = if batch.len() < keys.len() {
                Cursor::Index(done + batch.len() as u64)
            } else {
                Cursor::End
            };
            let items = batch.len() as i64;
            Ok((KeySet { keys: Keys::List(batch), ..rest }, cursor, items))
        }
        Keys::Range(_) if chunk.size > 1 && i64::from(chunk.size) >= chunk.claimed.items => {
            let left = chunk.claimed.items - chunk.ledger.counts.read;
            Ok((rest, Cursor::End, left.max(0)))
        }
        Keys::Range(range) => {
            let within = rest.within.as_ref();
            let cuts = chunk
                .job
                .source
                .cut(
                    &chunk.job.scope,
                    CutRange::new(within, range),
                    CutLimits::new(chunk.size, 1, None),
                )
                .await?;
            let first = cuts.chunks.into_iter().next();
            match (first, cuts.last) {
                (Some((KeySet { keys: keys @ Keys::Range(_), .. }, items)), Some(last))
                    if !cuts.done =>
                {
                    Ok((KeySet { keys, ..rest }, Cursor::Key(last), items))
                }
                (first, _) => Ok((rest, Cursor::End, first.map_or(0, |(_, items)| items))),
            }
        }
    }
}

/// The row of the batch, or the rows of its one key, make the statement fail: they are held as one
/// dead item, with all their data.
async fn set_aside(
    chunk: &mut Chunk,
    batch: KeySet,
    mut cursor: Cursor,
    error: ConnectorError,
) -> Result<(), StopReason> {
    let read = chunk
        .job
        .source
        .read(&chunk.job.scope, &batch, ReadLimits::new(MOST_RECORDS, usize::MAX))
        .await?;
    let mut items = read.items;
    if items.windows(2).any(|pair| pair[0].key != pair[1].key) {
        // A row came in since the batch was cut: which of them is the bad one, the next cut tells.
        return Ok(());
    }
    if let (false, Some(item), Keys::Range(_)) = (read.end, items.first(), &batch.keys) {
        // Rows that were not read have this key, or one that the next batch begins with.
        cursor = Cursor::Key(item.key.clone());
    }
    // The cursor passes the mark, which nobody would clear later.
    let mut commit = Commit::new(cursor, Effect::Unmark(batch.clone()));
    let mut records: Vec<_> = items.iter().map(|item| item.record.to_json()).collect();
    match items.pop() {
        Some(item) => {
            commit.counts = Counts { read: 1, dead: 1, ..Counts::default() };
            commit.defer.push(DeferredItem {
                key: item.key,
                state: DeferredState::Dead,
                attempts: 1,
                conflicts: 0,
                error: error.to_string(),
                context: serde_json::Value::Null,
                record: match records.len() {
                    1 => records.remove(0),
                    _ => records.into(),
                },
                wait: std::time::Duration::ZERO,
            });
        }
        // The row is gone meanwhile; a listed key without a record counts as skipped.
        None if matches!(batch.keys, Keys::List(_)) => {
            commit.counts = Counts { read: 1, skipped: 1, ..Counts::default() };
        }
        None => {}
    }
    Ok(chunk.commit(commit).await?)
}

/// How many records a dead letter of a key that is not unique keeps.
const MOST_RECORDS: u32 = 100;
