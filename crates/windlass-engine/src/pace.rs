//! The pace of a job whose items are limited a second.

use crate::executor::{Chunk, Stop};
use std::time::{Duration, Instant};

/// A slot that waits for its batch's time looks this often whether the limit was changed.
const PACE_LOOK: Duration = Duration::from_millis(200);
/// A chunk whose time is too far away is looked at again after this.
const LONGEST_PACE: Duration = Duration::from_secs(2);

/// Waits for the time of the next batch, where the job's items are limited a second. The time
/// is reserved in the store, so that all machines together keep the limit.
pub(crate) async fn wait(chunk: &Chunk) -> Result<(), Stop> {
    let Some(rate) = chunk.job.controls.rate(&chunk.job.pinned) else { return Ok(()) };
    let left = chunk.claimed.items - chunk.ledger.counts.read;
    let items = left.clamp(1, chunk.size.into());
    let most = chunk.job.definition().chunk.timeout / 4;
    let wait = chunk.hold.store().reserve(chunk.lease().chunk.job, items, most).await?;
    if wait > most {
        return Err(Stop::Wait(LONGEST_PACE.min(wait)));
    }
    let until = Instant::now() + wait;
    while let Some(wait) = until.checked_duration_since(Instant::now()) {
        tokio::select! {
            () = tokio::time::sleep(wait.min(PACE_LOOK)) => {}
            () = chunk.pulse().lost() => return Err(Stop::Lost),
        }
        if chunk.is_called_back() {
            return Err(Stop::HandBack);
        }
        // The limit was changed, and what was reserved at the old one is forgotten.
        if chunk.job.controls.rate(&chunk.job.pinned) != Some(rate) {
            break;
        }
    }
    Ok(())
}
