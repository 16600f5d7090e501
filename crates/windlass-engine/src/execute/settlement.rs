//! Settling a redrive: which dead letters are reprocessed when a chunk ends before its last item.
//!
//! The ledger decides: an item is done if the cursor has passed it and it is not deferred. The
//! caller fences the chunk first, so that no later commit can change the answer.

use crate::execute::chunk_runner::{ChunkRunner, LeaseOutcome, StopReason};
use crate::execute::lease::log_unrecorded;
use std::collections::HashSet;
use windlass_connectors::{Commit, DeferredPage, DeferredState, Effect, Ledger, Target};
use windlass_core::ErrorKind;
use windlass_core::{Cursor, Key, Keys};
use windlass_store::LeasedChunk;

/// Deferred items read in one call.
const DEFERRED_PER_PAGE: u32 = 100;

/// The keys of a redrive's chunk whose items the ledger counts as processed or skipped.
pub(crate) async fn settled_keys(
    target: &dyn Target,
    leased: &LeasedChunk,
    ledger: &Ledger,
) -> crate::Result<Vec<String>> {
    let Keys::List(keys) = &leased.key_set.keys else { return Ok(Vec::new()) };
    let passed = match ledger.cursor.position() {
        Cursor::Index(done) => usize::try_from(*done).unwrap_or(usize::MAX).min(keys.len()),
        Cursor::End => keys.len(),
        Cursor::Start | Cursor::Key(_) | Cursor::Except(..) => 0,
    };
    let mut deferred = deferred_keys(target, ledger).await?;
    deferred.extend(ledger.cursor.exceptions().iter().map(Key::to_text));
    let passed = keys[..passed].iter().map(|key| key.to_text());
    Ok(passed.filter(|key| !deferred.contains(key)).collect())
}

impl ChunkRunner {
    /// The keys whose dead letters are settled when a redrive's chunk fails. Another job may redrive
    /// the remaining ones at once, so no commit of this lease may follow.
    pub(crate) async fn settle(&mut self) -> Result<Vec<String>, StopReason> {
        if !self.job.is_redrive() {
            return Ok(Vec::new());
        }
        // A commit whose answer was lost may still be in flight. It compares the number of commits,
        // and this empty commit raises that number.
        self.fence_again().await?;
        let cursor = self.ledger.cursor.clone();
        self.commit(Commit::new(cursor, Effect::Nothing)).await?;
        Ok(settled_keys(self.job.target.as_ref(), &self.leased, &self.ledger).await?)
    }

    /// Releases a chunk that cannot be failed yet, because its ledger cannot be read or written.
    pub(crate) async fn fail_later(self, stop: StopReason, failure: &str) -> LeaseOutcome {
        let error = match stop {
            StopReason::Failed(error) => error,
            StopReason::LeaseLost
            | StopReason::HandBack
            | StopReason::Wait(_)
            | StopReason::Throttled(_) => return LeaseOutcome::LeaseLost,
        };
        let reason = format!("{failure}; the ledger is not available either: {error}");
        if matches!(error.kind(), ErrorKind::Permanent) {
            return self.pause_job(&reason).await;
        }
        let wait = self.job.definition().retry.backoff_after(self.leased.attempts + 1);
        log_unrecorded(self.lease.release(Some(&reason), false, wait).await);
        LeaseOutcome::HandedBack
    }
}

/// The keys that the cursor has passed and that are deferred or dead.
async fn deferred_keys(target: &dyn Target, ledger: &Ledger) -> crate::Result<HashSet<String>> {
    let mut keys = HashSet::new();
    if ledger.counts.add_up() && ledger.counts.dead == 0 {
        return Ok(keys);
    }
    for state in [DeferredState::Retry, DeferredState::Suspect, DeferredState::Dead] {
        let mut after: Option<String> = None;
        loop {
            let page = DeferredPage::new(state, after.as_deref(), DEFERRED_PER_PAGE);
            let page = target.deferred(ledger.chunk, page).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.to_text());
            keys.extend(page.iter().map(|item| item.key.to_text()));
        }
    }
    Ok(keys)
}
