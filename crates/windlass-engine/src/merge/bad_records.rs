//! Exports a chunk in which a record cannot be represented: the other records, and a dead letter for that one.

use crate::Result;
use crate::execute::chunk_runner::ChunkRunner;
use crate::merge::bad_rows::dead_letters;
use tokio::sync::mpsc::{Sender, channel};
use windlass_connectors::{ConnectorError, Extraction, ReadLimits};
use windlass_core::{Column, Cursor, Key, KeySet, Keys};
use windlass_drivers::ErrorClass;
use windlass_export::RecordBatch;
use windlass_store::NewDeadLetter;

/// Records that are extracted at once. Their rows are in memory until all of them are extracted.
const MAX_ITEMS: u32 = 1000;
/// The most bytes of records that are read at once for their keys.
const MAX_BYTES: usize = 16 << 20;

/// Sends the records of a key set in key order, without those that cannot be represented. Returns the dead letters
/// of these. A failing page of records is halved until the record that causes it is alone.
pub(super) async fn extract(
    chunk: &ChunkRunner,
    columns: &[Column],
    key_set: &KeySet,
    batches: Sender<RecordBatch>,
) -> Result<Vec<NewDeadLetter>> {
    let mut letters = Vec::new();
    let mut cursor = Cursor::Start;
    while let Some(remaining) = cursor.remaining(key_set) {
        let (page, next) = next_page(chunk, &cursor, &remaining).await?;
        cursor = next;
        let mut slices = vec![page];
        while let Some(mut keys) = slices.pop() {
            match extract_keys(chunk, columns, keys.clone()).await {
                Ok(extracted) => {
                    for batch in extracted {
                        if batches.send(batch).await.is_err() {
                            // The writer failed, and its error is returned.
                            return Ok(letters);
                        }
                    }
                }
                Err(error) if error.class() != Some(ErrorClass::Data) => return Err(error.into()),
                Err(_) if keys.len() > 1 => {
                    let second = keys.split_off(keys.len() / 2);
                    slices.extend([second, keys]);
                }
                Err(error) => {
                    letters.extend(dead_letters(chunk, &chunk.of_keys(keys), &error).await?);
                }
            }
        }
    }
    Ok(letters)
}

/// The next keys and the cursor behind them.
async fn next_page(
    chunk: &ChunkRunner,
    cursor: &Cursor,
    remaining: &KeySet,
) -> Result<(Vec<Key>, Cursor)> {
    match &remaining.keys {
        Keys::List(keys) => {
            let taken: Vec<Key> = keys.iter().take(MAX_ITEMS as usize).cloned().collect();
            let done = if let Cursor::Index(done) = cursor { *done } else { 0 };
            let next = match taken.len() == keys.len() {
                true => Cursor::End,
                false => Cursor::Index(done + taken.len() as u64),
            };
            Ok((taken, next))
        }
        Keys::Range(_) => {
            let limits = ReadLimits::new(MAX_ITEMS, MAX_BYTES);
            let read = chunk.job.source.read(&chunk.job.scope, remaining, limits).await?;
            let keys: Vec<Key> = read.items.into_iter().map(|item| item.key).collect();
            let next = match keys.last() {
                Some(last) if !read.end => Cursor::Key(last.clone()),
                _ => Cursor::End,
            };
            Ok((keys, next))
        }
    }
}

/// The records of these keys.
async fn extract_keys(
    chunk: &ChunkRunner,
    columns: &[Column],
    keys: Vec<Key>,
) -> std::result::Result<Vec<RecordBatch>, ConnectorError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let key_set = chunk.of_keys(keys);
    let (batches, mut rows) = channel(1);
    let extraction = Extraction { key_set: &key_set, columns, batches };
    let reading = chunk.job.fan_in.extract(&chunk.job.scope, extraction);
    let collecting = async {
        let mut collected = Vec::new();
        while let Some(batch) = rows.recv().await {
            collected.push(batch);
        }
        collected
    };
    let (read, collected) = tokio::join!(reading, collecting);
    read.map(|()| collected)
}
