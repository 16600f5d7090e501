//! The pace of a chunk: before each batch it waits as the health of its database and the limit of
//! its job's items a second ask for.

use crate::execute::chunk_runner::{Chunk, StopReason};
use crate::operate::health_probe::MAX_THROTTLE_DELAY;
use std::time::Duration;

/// A slot that waits looks this often whether it still should.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A chunk whose time is too far away is looked at again after this.
const LONGEST: Duration = Duration::from_secs(2);

/// Waits for the time of the next batch.
pub(crate) async fn wait(chunk: &Chunk) -> Result<(), StopReason> {
    // A good part of the chunk's time is left for its work.
    let most = chunk.job.definition().chunk.timeout / 4;
    tokio::select! {
        biased;
        () = chunk.job.throttle.delay(most.min(MAX_THROTTLE_DELAY)) => {}
        stop = called_back(chunk) => return Err(stop),
    }
    limit(chunk, most).await
}

/// Waits where the job's items are limited a second. The time is reserved in the store, so that all
/// machines together keep the limit.
async fn limit(chunk: &Chunk, most: Duration) -> Result<(), StopReason> {
    let rate = || chunk.job.controls.rate(&chunk.job.snapshot);
    let Some(now) = rate() else { return Ok(()) };
    let left = chunk.claimed.items - chunk.ledger.counts.read;
    let items = left.clamp(1, chunk.size.into());
    let wait = chunk.hold.store().reserve(chunk.lease().chunk.job, items, most).await?;
    if wait > most {
        return Err(StopReason::Wait(LONGEST.min(wait)));
    }
    let changed = async {
        while rate() == Some(now) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep(wait) => Ok(()),
        // What was reserved at the old limit is forgotten.
        () = changed => Ok(()),
        stop = called_back(chunk) => Err(stop),
    }
}

/// Waits until the chunk is lost or to be handed back.
async fn called_back(chunk: &Chunk) -> StopReason {
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = chunk.pulse().lost() => return StopReason::Lost,
        }
        if chunk.is_called_back() {
            return StopReason::HandBack;
        }
    }
}
