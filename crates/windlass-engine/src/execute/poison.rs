//! An item that kills its process must become a dead letter, not a loop.
//!
//! When a chunk's lease was lost several times in a row without a single commit, an item of it is
//! under suspicion. Then each item is first held as being on trial, in a commit of its own, and
//! only then worked alone. A process that dies leaves the trial behind: the next one finds it,
//! gives the item one more chance, and then sets it aside.

use crate::EngineError;
use crate::execute::chunk_runner::{Chunk, StopReason};
use crate::execute::per_item::BatchOrigin;
use std::time::Duration;
use windlass_connectors::{Commit, DeferredItem, DeferredPage, DeferredState, Effect};
use windlass_core::{Counts, KeySet};

/// Claims lost in a row, without a commit, after which items are worked one by one.
const MOST_STALLS: u32 = 5;
/// Deaths of a process on one item, worked alone, that make it a dead letter.
const MOST_DEATHS: u32 = 2;

/// Whether the chunk is to be worked item by item.
pub(crate) fn is_due(chunk: &Chunk) -> bool {
    chunk.ledger.stalls >= MOST_STALLS
}

/// Works the next item alone.
pub(crate) async fn run_batch(chunk: &mut Chunk, rest: KeySet) -> Result<(), StopReason> {
    let (batch, from) = chunk.read_next(rest, 1).await?;
    let BatchOrigin::Cursor(cursor, missing) = from else { return Ok(()) };
    let counts =
        Counts { read: batch.len() as i64 + missing, skipped: missing, ..Counts::default() };
    let defer: Vec<DeferredItem> = batch
        .iter()
        .map(|tried| on_trial(tried.item.key.clone(), 1, tried.item.record.to_json()))
        .collect();
    let commit = Commit {
        cursor,
        effect: Effect::Nothing,
        counts,
        defer: defer.clone(),
        resolve: Vec::new(),
    };
    chunk.commit(commit).await?;
    match defer.into_iter().next() {
        Some(held) => try_alone(chunk, held).await,
        None => Ok(()),
    }
}

/// Works an item on trial. That its step was not there is no death of the item.
async fn try_alone(chunk: &mut Chunk, mut held: DeferredItem) -> Result<(), StopReason> {
    let tried = chunk.try_held(vec![held.clone()]).await;
    if let Err(StopReason::Failed(EngineError::Step(_))) = &tried {
        held.attempts = held.attempts.saturating_sub(1);
        let cursor = chunk.ledger.cursor.clone();
        let commit = Commit { defer: vec![held], ..Commit::new(cursor, Effect::Nothing) };
        chunk.commit(commit).await?;
    }
    tried
}

/// Takes up the trials that a dead process left behind.
pub(crate) async fn resume(chunk: &mut Chunk) -> Result<(), StopReason> {
    let left = chunk
        .job
        .target
        .deferred(chunk.lease().chunk, DeferredPage::new(DeferredState::Suspect, None, 10))
        .await?;
    for mut held in left {
        let mut counts = Counts::default();
        if held.attempts >= MOST_DEATHS {
            held.state = DeferredState::Dead;
            held.error = format!(
                "the process died, or the step gave no answer, {} times while it worked on this \
                 item alone",
                held.attempts
            );
            counts.dead = 1;
        } else {
            held.attempts += 1;
        }
        let commit = Commit {
            cursor: chunk.ledger.cursor.clone(),
            effect: Effect::Nothing,
            counts,
            defer: vec![held.clone()],
            resolve: Vec::new(),
        };
        chunk.commit(commit).await?;
        if held.state == DeferredState::Suspect {
            try_alone(chunk, held).await?;
        }
    }
    Ok(())
}

fn on_trial(key: windlass_core::Key, attempts: u32, record: serde_json::Value) -> DeferredItem {
    DeferredItem {
        key,
        state: DeferredState::Suspect,
        attempts,
        conflicts: 0,
        error: "on trial: an item of this chunk seems to kill its process".to_owned(),
        context: serde_json::Value::Null,
        record,
        wait: Duration::ZERO,
    }
}
