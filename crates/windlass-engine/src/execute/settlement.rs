//! Which letters of a redrive are settled when one of its chunks ends short of its end.
//!
//! The ledger decides: an item is done when the cursor has passed it and it is not held. That is
//! final once no commit of the chunk can follow, which the caller sees to by a fence.

use crate::execute::chunk_runner::{Chunk, ClaimOutcome, StopReason};
use crate::execute::worker::report;
use std::collections::HashSet;
use windlass_connectors::{Commit, DeferredPage, DeferredState, Effect, Ledger, Target};
use windlass_core::ErrorKind;
use windlass_core::{Cursor, Keys};
use windlass_store::ClaimedChunk;

/// DeferredItem items read at once.
const HELD_PER_PAGE: u32 = 100;

/// The keys of a redrive's chunk whose items are processed or skipped, by its ledger.
pub(crate) async fn settled_keys(
    target: &dyn Target,
    claimed: &ClaimedChunk,
    ledger: &Ledger,
) -> crate::Result<Vec<String>> {
    let Keys::List(keys) = &claimed.key_set.keys else { return Ok(Vec::new()) };
    let passed = match ledger.cursor {
        Cursor::Index(done) => usize::try_from(done).unwrap_or(usize::MAX).min(keys.len()),
        Cursor::End => keys.len(),
        Cursor::Start | Cursor::Key(_) => 0,
    };
    let held = held_keys(target, ledger).await?;
    let passed = keys[..passed].iter().map(|key| key.to_text());
    Ok(passed.filter(|key| !held.contains(key)).collect())
}

impl Chunk {
    /// The keys whose letters are settled when a redrive's chunk fails. The letters that are left
    /// may then be redriven by another job, so no commit of this claim may follow.
    pub(crate) async fn settle(&mut self) -> Result<Vec<String>, StopReason> {
        if !self.job.is_redrive() {
            return Ok(Vec::new());
        }
        // A commit whose answer was lost may still be on its way. It expects the number of commits
        // that it read, and this empty one raises that number.
        self.fence_again().await?;
        let cursor = self.ledger.cursor.clone();
        self.commit(Commit::new(cursor, Effect::Nothing)).await?;
        Ok(settled_keys(self.job.target.as_ref(), &self.claimed, &self.ledger).await?)
    }

    /// Hands back a chunk that may not fail yet, since its ledger cannot be read or written.
    pub(crate) async fn fail_later(self, stop: StopReason, failure: &str) -> ClaimOutcome {
        let error = match stop {
            StopReason::Failed(error) => error,
            StopReason::Lost | StopReason::HandBack | StopReason::Wait(_) => {
                return ClaimOutcome::Lost;
            }
        };
        let reason = format!("{failure}; and the ledger is not available: {error}");
        if matches!(error.kind(), ErrorKind::Permanent) {
            return self.pause_job(&reason).await;
        }
        let wait = self.job.definition().retry.backoff_after(self.claimed.attempts + 1);
        report(self.hold.release(Some(&reason), false, wait).await);
        ClaimOutcome::HandedBack
    }
}

/// The keys that the cursor has passed and that are not done, or failed for good.
async fn held_keys(target: &dyn Target, ledger: &Ledger) -> crate::Result<HashSet<String>> {
    let mut keys = HashSet::new();
    if ledger.counts.add_up() && ledger.counts.dead == 0 {
        return Ok(keys);
    }
    for state in [DeferredState::Retry, DeferredState::Suspect, DeferredState::Dead] {
        let mut after: Option<String> = None;
        loop {
            let page = target
                .deferred(ledger.chunk, DeferredPage::new(state, after.as_deref(), HELD_PER_PAGE))
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.to_text());
            keys.extend(page.iter().map(|held| held.key.to_text()));
        }
    }
    Ok(keys)
}
