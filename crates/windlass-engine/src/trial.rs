//! An item that kills its process must become a dead letter, not a loop.
//!
//! When a chunk's lease was lost several times in a row without a single commit, an item of it is
//! under suspicion. Then each item is first held as being on trial, in a commit of its own, and
//! only then worked alone. A process that dies leaves the trial behind: the next one finds it,
//! gives the item one more chance, and then sets it aside.

use crate::EngineError;
use crate::executor::{Chunk, Stop};
use crate::outcomes::From;
use std::time::Duration;
use windlass_core::{Counts, Extent};
use windlass_data::{Commit, Effect, Held, HeldState};

/// Claims lost in a row, without a commit, after which items are worked one by one.
const MOST_STALLS: u32 = 5;
/// Deaths of a process on one item, worked alone, that make it a dead letter.
const MOST_DEATHS: u32 = 2;

/// Whether the chunk is to be worked item by item.
pub(crate) fn is_due(chunk: &Chunk) -> bool {
    chunk.ledger.stalls >= MOST_STALLS
}

/// Works the next item alone.
pub(crate) async fn pass(chunk: &mut Chunk, rest: Extent) -> Result<(), Stop> {
    let (batch, from) = chunk.read_next(rest, 1).await?;
    let From::Pass(cursor, missing) = from else { return Ok(()) };
    let counts =
        Counts { read: batch.len() as i64 + missing, skipped: missing, ..Counts::default() };
    let hold: Vec<Held> = batch
        .iter()
        .map(|tried| on_trial(tried.item.key.clone(), 1, tried.item.record.to_json()))
        .collect();
    let commit =
        Commit { cursor, effect: Effect::Nothing, counts, hold: hold.clone(), settle: Vec::new() };
    chunk.commit(commit).await?;
    match hold.into_iter().next() {
        Some(held) => try_alone(chunk, held).await,
        None => Ok(()),
    }
}

/// Works an item on trial. That its step was not there is no death of the item.
async fn try_alone(chunk: &mut Chunk, mut held: Held) -> Result<(), Stop> {
    let tried = chunk.try_held(vec![held.clone()]).await;
    if let Err(Stop::Failed(EngineError::Step(_))) = &tried {
        held.attempts = held.attempts.saturating_sub(1);
        let cursor = chunk.ledger.cursor.clone();
        let commit = Commit { hold: vec![held], ..Commit::new(cursor, Effect::Nothing) };
        chunk.commit(commit).await?;
    }
    tried
}

/// Takes up the trials that a dead process left behind.
pub(crate) async fn resume(chunk: &mut Chunk) -> Result<(), Stop> {
    let left = chunk.connection().held(chunk.lease().chunk, HeldState::Trial, None, 10).await?;
    for mut held in left {
        let mut counts = Counts::default();
        if held.attempts >= MOST_DEATHS {
            held.state = HeldState::Dead;
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
            hold: vec![held.clone()],
            settle: Vec::new(),
        };
        chunk.commit(commit).await?;
        if held.state == HeldState::Trial {
            try_alone(chunk, held).await?;
        }
    }
    Ok(())
}

fn on_trial(key: windlass_core::Key, attempts: u32, record: serde_json::Value) -> Held {
    Held {
        key,
        state: HeldState::Trial,
        attempts,
        conflicts: 0,
        error: "on trial: an item of this chunk seems to kill its process".to_owned(),
        context: serde_json::Value::Null,
        record,
        wait: Duration::ZERO,
    }
}
