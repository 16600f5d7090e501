//! Throttling: before each batch a chunk waits for the health of its database and for the rate limit
//! of its job. It waits outside of its slot, so that other chunks can use the slot.

use crate::execute::chunk_runner::{ChunkRunner, StopReason, ThrottleCause};
use crate::operate::health_probe::MAX_THROTTLE_DELAY;
use std::time::{Duration, Instant};

/// How often a waiting chunk checks whether it should still wait.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest wait before a reservation that was too far ahead is tried again.
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// Returns at once if the next batch may start. Otherwise the chunk must leave its slot and
/// [`wait`].
pub(crate) async fn check(chunk: &mut ChunkRunner) -> Result<(), StopReason> {
    if std::mem::take(&mut chunk.may_start_batch) {
        return Ok(());
    }
    if !chunk.job.throttle.delay_time().is_zero() {
        return Err(StopReason::Throttled(ThrottleCause::Health));
    }
    match reserve(chunk).await? {
        Some(wait) if wait.is_zero() => Ok(()),
        Some(wait) => {
            let begins = Instant::now() + wait;
            Err(StopReason::Throttled(ThrottleCause::Rate(Some(begins))))
        }
        None => Err(StopReason::Throttled(ThrottleCause::Rate(None))),
    }
}

/// Waits until the next batch may start.
pub(crate) async fn wait(chunk: &ChunkRunner, cause: ThrottleCause) -> Result<(), StopReason> {
    let mut begins = match cause {
        ThrottleCause::Rate(begins) => begins,
        ThrottleCause::Health => {
            tokio::select! {
                biased;
                () = chunk.job.throttle.delay(longest_wait(chunk).min(MAX_THROTTLE_DELAY)) => {}
                stop = interrupted(chunk) => return Err(stop),
            }
            None
        }
    };
    let gives_up = Instant::now() + longest_wait(chunk);
    while begins.is_none() {
        match reserve(chunk).await? {
            Some(wait) => begins = Some(Instant::now() + wait),
            // The limit is reached for longer than this chunk may wait, so it is released and retried.
            None if Instant::now() >= gives_up => return Err(StopReason::Wait(LONGEST_RETRY)),
            None => tokio::select! {
                () = tokio::time::sleep(LONGEST_RETRY) => {}
                stop = interrupted(chunk) => return Err(stop),
            },
        }
    }
    let rate = || chunk.job.controls.rate(&chunk.job.snapshot);
    let current = rate();
    let rate_changed = async {
        while rate() == current {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep_until(begins.unwrap_or_else(Instant::now).into()) => Ok(()),
        // What was reserved at the old rate no longer counts.
        () = rate_changed => Ok(()),
        stop = interrupted(chunk) => Err(stop),
    }
}

/// The most time that one wait may take. Most of the chunk's timeout is left for its work.
fn longest_wait(chunk: &ChunkRunner) -> Duration {
    chunk.job.definition().chunk.timeout / 4
}

/// Reserves time for the next batch at the job's limit of items per second. The time is reserved in
/// the store, so that all machines together stay below the limit. Returns the time until it begins;
/// `None` if that is too long, so that nothing was reserved.
async fn reserve(chunk: &ChunkRunner) -> Result<Option<Duration>, StopReason> {
    if chunk.job.controls.rate(&chunk.job.snapshot).is_none() {
        return Ok(Some(Duration::ZERO));
    }
    let left = chunk.leased.items - chunk.ledger.counts.read;
    let items = left.clamp(1, chunk.batch_size.into());
    let (store, longest) = (chunk.lease.store(), longest_wait(chunk));
    let wait = store.reserve(chunk.lease().chunk.job, items, longest).await?;
    Ok((wait <= longest).then_some(wait))
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
