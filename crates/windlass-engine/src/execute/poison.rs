//! Poison items: an item that crashes its process becomes a dead letter instead of an endless loop.
//!
//! If a chunk loses its lease several times in a row without a commit, one of its items is
//! suspected. From then on each item is first stored as suspect, in a commit of its own, and then
//! worked alone. If the process crashes, the suspect item stays in the ledger. The next worker
//! finds it, tries it once more, and then makes it a dead letter.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::per_item::BatchOrigin;
use std::time::Duration;
use windlass_connectors::{Commit, DeferredItem, DeferredPage, DeferredState, Effect};
use windlass_core::{Counts, KeySet};

/// Leases lost in a row, without a commit, after which items are worked one by one.
const MAX_LOST_LEASES: u32 = 5;
/// Crashes on one item, worked alone, after which it is a dead letter.
const MAX_CRASHES: u32 = 2;

/// Whether an item of the chunk is suspected, so that items are worked one by one.
pub(crate) fn is_suspected(chunk: &ChunkRunner) -> bool {
    chunk.ledger.stalls >= MAX_LOST_LEASES
}

/// Works the next item alone.
pub(crate) async fn run_batch(
    chunk: &mut ChunkRunner,
    remaining: KeySet,
) -> Result<(), StopReason> {
    let (batch, from) = chunk.read_next(remaining, 1).await?;
    let BatchOrigin::Cursor(cursor, missing) = from else { return Ok(()) };
    let counts =
        Counts { read: batch.len() as i64 + missing, skipped: missing, ..Counts::default() };
    let suspects: Vec<DeferredItem> = batch
        .iter()
        .map(|pending| suspect(pending.item.key.clone(), 1, pending.item.record.to_json()))
        .collect();
    let commit = Commit {
        cursor,
        effect: Effect::Nothing,
        counts,
        defer: suspects.clone(),
        resolve: Vec::new(),
    };
    chunk.commit(commit).await?;
    match suspects.into_iter().next() {
        Some(item) => work_alone(chunk, item).await,
        None => Ok(()),
    }
}

/// Works a suspect item alone. An unavailable step is not a crash caused by the item.
async fn work_alone(chunk: &mut ChunkRunner, mut item: DeferredItem) -> Result<(), StopReason> {
    let result = chunk.work_deferred(vec![item.clone()]).await;
    if let Err(StopReason::Failed(EngineError::Step(_))) = &result {
        item.attempts = item.attempts.saturating_sub(1);
        let cursor = chunk.ledger.cursor.clone();
        let commit = Commit { defer: vec![item], ..Commit::new(cursor, Effect::Nothing) };
        chunk.commit(commit).await?;
    }
    result
}

/// Resumes the suspect items that a crashed process left in the ledger.
pub(crate) async fn resume(chunk: &mut ChunkRunner) -> Result<(), StopReason> {
    let page = DeferredPage::new(DeferredState::Suspect, None, 10);
    let suspects = chunk.job.target.deferred(chunk.lease().chunk, page).await?;
    for mut item in suspects {
        let mut counts = Counts::default();
        if item.attempts >= MAX_CRASHES {
            item.state = DeferredState::Dead;
            item.error = format!(
                "the process crashed, or the step did not answer, {} times while it worked on this \
                 item alone",
                item.attempts
            );
            counts.dead = 1;
        } else {
            item.attempts += 1;
        }
        let commit = Commit {
            cursor: chunk.ledger.cursor.clone(),
            effect: Effect::Nothing,
            counts,
            defer: vec![item.clone()],
            resolve: Vec::new(),
        };
        chunk.commit(commit).await?;
        if item.state == DeferredState::Suspect {
            work_alone(chunk, item).await?;
        }
    }
    Ok(())
}

fn suspect(key: windlass_core::Key, attempts: u32, record: serde_json::Value) -> DeferredItem {
    DeferredItem {
        key,
        state: DeferredState::Suspect,
        attempts,
        conflicts: 0,
        error: "suspect: an item of this chunk may crash its process".to_owned(),
        context: serde_json::Value::Null,
        record,
        wait: Duration::ZERO,
    }
}
