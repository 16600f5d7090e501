//! `sql` and `refresh`: one set-based statement per commit. A failing row is found by halving.

use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::unwritten::{self, Unwritten};
use crate::job_context::JobContext;
use windlass_connectors::{
    Commit, ConnectorError, CutLimits, CutRange, DeferredItem, DeferredState, Effect, ReadLimits,
};
use windlass_core::{Counts, Cursor, Key, KeySet, Keys};
use windlass_drivers::ErrorClass;

/// Commits the next batch. If the database rejects a value, the commit is rolled back and the next
/// batch is half as large; a batch of one row that fails becomes a dead letter. After a success
/// batches grow again, so one bad row among a thousand costs about twenty commits.
pub(crate) async fn run_batch(
    chunk: &mut ChunkRunner,
    remaining: KeySet,
) -> Result<(), StopReason> {
    let (batch, cursor, items) = next_batch(chunk, remaining).await?;
    // Most statements affect every row that existed when the chunk was planned.
    let counts = Counts { read: items, processed: items, ..Counts::default() };
    let effect = Effect::Statement(batch.clone());
    let statement = Commit { counts, ..Commit::new(cursor.clone(), effect) };
    match chunk.commit(statement).await {
        Ok(()) => {
            let full = chunk.job.commit_items();
            chunk.batch_size = chunk.batch_size.saturating_mul(2).min(full);
            Ok(())
        }
        Err(error) if error.class() != Some(ErrorClass::Data) => Err(error.into()),
        Err(_) if chunk.batch_size > 1 => {
            let items = u32::try_from(chunk.leased.items).unwrap_or(u32::MAX).max(2);
            chunk.batch_size = chunk.batch_size.min(items) / 2;
            Ok(())
        }
        Err(error) => {
            let exceptions = chunk.ledger.cursor.exceptions().to_vec();
            make_dead_letter(chunk, batch, cursor, error, exceptions).await
        }
    }
}

/// Runs the statement on a row that is an exception of the cursor.
pub(crate) async fn work_exception(chunk: &mut ChunkRunner, key: Key) -> Result<(), StopReason> {
    let (batch, cursor) = (chunk.of_keys(vec![key.clone()]), chunk.ledger.cursor.clone());
    let counts = Counts { read: 1, processed: 1, ..Counts::default() };
    let effect = Effect::Statement(batch.clone());
    let statement = Commit { counts, ..Commit::new(cursor.clone(), effect) };
    let exceptions = chunk.exceptions_but(&[key]);
    match chunk.commit_except(statement, exceptions.clone()).await {
        Ok(()) => Ok(()),
        Err(error) if error.class() != Some(ErrorClass::Data) => Err(error.into()),
        Err(error) => make_dead_letter(chunk, batch, cursor, error, exceptions).await,
    }
}

/// The next batch, the cursor after it, and how many items it is expected to have. If a commit may
/// be as large as the chunk, this is everything that remains, and no keys are read.
async fn next_batch(
    chunk: &ChunkRunner,
    remaining: KeySet,
) -> Result<(KeySet, Cursor, i64), StopReason> {
    let size = chunk.batch_size;
    if matches!(remaining.keys, Keys::Range(_)) && size > 1 && i64::from(size) >= chunk.leased.items
    {
        let left = chunk.leased.items - chunk.ledger.counts.read;
        return Ok((remaining, Cursor::End, left.max(0)));
    }
    Ok(cut_batch(&chunk.job, &chunk.ledger.cursor, remaining, size).await?)
}

/// The first `size` items of what remains after a cursor, the cursor after them, and how many items they
/// are expected to be.
pub(crate) async fn cut_batch(
    job: &JobContext,
    cursor: &Cursor,
    remaining: KeySet,
    size: u32,
) -> Result<(KeySet, Cursor, i64), ConnectorError> {
    match &remaining.keys {
        Keys::List(keys) => {
            let done = match cursor.position() {
                Cursor::Index(done) => *done,
                _ => 0,
            };
            let batch = keys.iter().take(size as usize).cloned().collect::<Vec<_>>();
            let cursor = if batch.len() < keys.len() {
                Cursor::Index(done + batch.len() as u64)
            } else {
                Cursor::End
            };
            let items = batch.len() as i64;
            Ok((KeySet { keys: Keys::List(batch), ..remaining }, cursor, items))
        }
        Keys::Range(range) => {
            let within = remaining.within.as_ref();
            let range = CutRange { blocks: remaining.blocks, ..CutRange::new(within, range) };
            let cuts = job.source.cut(&job.scope, range, CutLimits::new(size, 1, None)).await?;
            let first = cuts.chunks.into_iter().next();
            match (first, cuts.last) {
                (Some((KeySet { keys: keys @ Keys::Range(_), .. }, items)), Some(last))
                    if !cuts.done =>
                {
                    Ok((KeySet { keys, ..remaining }, Cursor::Key(last), items))
                }
                (first, _) => Ok((remaining, Cursor::End, first.map_or(0, |(_, items)| items))),
            }
        }
    }
}

/// Makes the row of the batch, or the rows of its one key, a dead letter with all their data. The cursor has
/// these exceptions afterwards, and one more if the dead letter cannot be written.
async fn make_dead_letter(
    chunk: &mut ChunkRunner,
    batch: KeySet,
    mut cursor: Cursor,
    error: ConnectorError,
    exceptions: Vec<Key>,
) -> Result<(), StopReason> {
    let limits = ReadLimits::new(MAX_RECORDS_PER_LETTER, usize::MAX);
    let read = chunk.job.source.read(&chunk.job.scope, &batch, limits).await?;
    let mut items = read.items;
    if items.windows(2).any(|pair| pair[0].key != pair[1].key) {
        // A row was inserted since: the next batch, which has one row, shows which one fails.
        return Ok(());
    }
    if let (false, Some(item), Keys::Range(_)) = (read.end, items.first(), &batch.keys) {
        // The unread rows have this key, or a key with which the next batch begins.
        cursor = Cursor::Key(item.key.clone());
    }
    // Clear the mark now: the cursor passes these rows.
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
        // The row was deleted since. A listed key without a record counts as skipped.
        None if matches!(batch.keys, Keys::List(_)) => {
            commit.counts = Counts { read: 1, skipped: 1, ..Counts::default() };
        }
        None => {}
    }
    let letter = commit.defer.first().cloned();
    match (chunk.commit_except(commit.clone(), exceptions).await, letter) {
        (Err(error), Some(letter)) if error.class() == Some(ErrorClass::Data) => {
            let unwritten = Unwritten { key: &letter.key, record: &letter.record, error };
            let pass = Commit::new(commit.cursor, commit.effect);
            unwritten::pass(chunk, unwritten, pass).await
        }
        (committed, _) => Ok(committed?),
    }
}

/// Records that a dead letter keeps if its key is not unique.
const MAX_RECORDS_PER_LETTER: u32 = 100;
