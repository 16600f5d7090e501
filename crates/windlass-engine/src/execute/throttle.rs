//! Throttling: before each batch a chunk waits for the health of its database and for the rate
//! limit of its job.

use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::operate::health_probe::MAX_THROTTLE_DELAY;
use std::time::Duration;

/// How often a waiting slot checks whether it should still wait.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A chunk whose reserved time is too far ahead is released for at most this long.
const LONGEST_RELEASE: Duration = Duration::from_secs(2);

/// Waits until the next batch may start.
pub(crate) async fn wait(chunk: &ChunkRunner) -> Result<(), StopReason> {
    // Most of the chunk's timeout is left for its work.
    let longest = chunk.job.definition().chunk.timeout / 4;
    tokio::select! {
        biased;
        () = chunk.job.throttle.delay(longest.min(MAX_THROTTLE_DELAY)) => {}
        stop = interrupted(chunk) => return Err(stop),
    }
    wait_for_rate(chunk, longest).await
}

/// Waits for the job's limit of items per second. The time is reserved in the store, so that all
/// machines together stay below the limit.
async fn wait_for_rate(chunk: &ChunkRunner, longest: Duration) -> Result<(), StopReason> {
    let rate = || chunk.job.controls.rate(&chunk.job.snapshot);
    let Some(current) = rate() else { return Ok(()) };
    let left = chunk.leased.items - chunk.ledger.counts.read;
    let items = left.clamp(1, chunk.batch_size.into());
    let store = chunk.lease.store();
    let wait = store.reserve(chunk.lease().chunk.job, items, longest).await?;
    if wait > longest {
        return Err(StopReason::Wait(LONGEST_RELEASE.min(wait)));
    }
    let rate_changed = async {
        while rate() == Some(current) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep(wait) => Ok(()),
        // What was reserved at the old rate no longer counts.
        () = rate_changed => Ok(()),
        stop = interrupted(chunk) => Err(stop),
    }
}

/// Waits until the lease is lost or the chunk is to be handed back.
async fn interrupted(chunk: &ChunkRunner) -> StopReason {
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = chunk.lease_state().lost() => return StopReason::LeaseLost,
        }
        if chunk.must_hand_back() {
            return StopReason::HandBack;
        }
    }
}
