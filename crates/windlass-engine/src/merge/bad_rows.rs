//! Runs the `map` of a chunk in which a row makes the statement fail: on the other rows, and with a dead letter for
//! that one.

use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::set_based::cut_batch;
use windlass_connectors::{ConnectorError, Item, Mapped, ReadLimits};
use windlass_core::{Cursor, KeySet, OnBadRow};
use windlass_drivers::ErrorClass;
use windlass_store::NewDeadLetter;

/// Whether an error is that of a row which becomes a dead letter.
pub(super) fn makes_dead_letter(chunk: &ChunkRunner, error: &ConnectorError) -> bool {
    let on_bad_row = chunk.job.definition().step.on_bad_row.unwrap_or_default();
    on_bad_row == OnBadRow::DeadLetter && error.class() == Some(ErrorClass::Data)
}

/// Runs the `map` of a key set in several statements. A batch that fails is halved until the row that causes it is
/// alone; after a success batches grow again. The rows of all statements are the part, as if the chunk had been cut
/// smaller.
pub(super) async fn map(chunk: &mut ChunkRunner, key_set: &KeySet) -> Result<Mapped, StopReason> {
    let job = chunk.job.clone();
    let full = u32::try_from(chunk.leased.items).unwrap_or(u32::MAX).max(2);
    let mut size = full / 2;
    let (mut mapped, mut letters) = (Mapped::default(), Vec::new());
    let mut cursor = Cursor::Start;
    while let Some(remaining) = cursor.remaining(key_set) {
        if chunk.must_hand_back() {
            return Err(StopReason::HandBack);
        }
        let (batch, next, _) = cut_batch(&job, &cursor, remaining, size).await?;
        match job.fan_in.map(&job.scope, &job.part_columns, &batch).await {
            Ok(more) => {
                mapped.rows.extend(more.rows);
                mapped.read += more.read;
                cursor = next;
                size = size.saturating_mul(2).min(full);
            }
            Err(error) if error.class() != Some(ErrorClass::Data) => return Err(error.into()),
            Err(_) if size > 1 => size /= 2,
            Err(error) => {
                letters.extend(dead_letters(chunk, &batch, &error).await?);
                cursor = next;
            }
        }
    }
    chunk.dead_letters = letters;
    Ok(mapped)
}

/// The dead letters of the rows of this batch, one per key: none if its row was deleted meanwhile, two if another row
/// was inserted within the batch, because neither of them is in the part.
pub(super) async fn dead_letters(
    chunk: &ChunkRunner,
    batch: &KeySet,
    error: &ConnectorError,
) -> crate::Result<Vec<NewDeadLetter>> {
    let limits = ReadLimits::new(1000, usize::MAX);
    let mut items = chunk.job.source.read(&chunk.job.scope, batch, limits).await?.items;
    items.dedup_by(|item, previous| item.key == previous.key);
    let letter = |item: Item| NewDeadLetter {
        key: item.key.to_text(),
        record: item.record.to_json(),
        error: error.to_string(),
        context: serde_json::Value::Null,
        attempts: 1,
    };
    Ok(items.into_iter().map(letter).collect())
}
