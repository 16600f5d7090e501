//! The executor: works one chunk from its cursor to its end, one commit after another.
//!
//! This is the commit protocol as it runs. The chunk arrives claimed, fenced and confirmed. Each
//! round commits one batch with a compare-and-set on the ledger; what the cursor passes but is not
//! done is held beside the ledger in the same transaction; when the cursor is at the end and
//! nothing waits, the chunk's dead letters and counts are copied to the store and it is completed.

use crate::EngineError;
use crate::execute::heartbeat::LeaseState;
use crate::execute::lease::ChunkLease;
use crate::execute::poison;
use crate::execute::set_based;
use crate::execute::settlement;
pub(crate) use crate::execute::stop_reason::{ClaimOutcome, StopReason};
use crate::execute::throttle;
use crate::execute::worker::{Shutdown, report};
use crate::job_context::JobContext;
use crate::merge::destination;
use crate::merge::map_export;
use crate::step::StepError;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredPage, DeferredState, Effect, Fence, Ledger,
};
use windlass_core::ErrorKind;
use windlass_core::{KeySet, Keys};
use windlass_drivers::ErrorClass;
use windlass_store::{ClaimedChunk, Kept, Lease, NewDeadLetter, NewPart, Progress, Standing};

/// A chunk at work: the owned hold on it, and its ledger row as of the last commit.
pub(crate) struct Chunk {
    pub(crate) job: Arc<JobContext>,
    pub(crate) hold: ChunkLease,
    pub(crate) claimed: ClaimedChunk,
    pub(crate) ledger: Ledger,
    /// When it was opened: the time it waits for a slot counts towards `chunk.timeout`.
    opened: Instant,
    /// Items of the next batch: halved when one of them makes a statement fail, lowered when
    /// records are so wide that fewer fill the memory set aside for a batch.
    pub(crate) size: u32,
    /// Whether this claim has set the mark, which then goes with the claim.
    marked: bool,
    /// What the chunk has put out, where that is all it does.
    pub(crate) part: Option<NewPart>,
}

/// Letters copied to the store at once.
const LETTERS_PER_COPY: u32 = 100;
/// How often a chunk is opened anew after its connection broke, before it is handed back.
const MOST_REOPENINGS: u32 = 3;

/// A chunk whose work is over: everything is committed, or something stopped it.
pub(crate) struct ChunkResult {
    chunk: Chunk,
    stop: Option<StopReason>,
}

/// Works a chunk as far as it goes.
pub(crate) async fn work(mut chunk: Chunk, shutdown: Shutdown) -> ChunkResult {
    let timeout = chunk.job.definition().chunk.timeout;
    // A little before the store's own limit, so that the time-out is counted as what it is, a
    // failure of the work, and not as a lost lease.
    let limit = timeout - (timeout / 10).min(Duration::from_secs(1));
    let waited = chunk.opened.elapsed();
    if waited > timeout / 2 {
        // Claimed ahead in better times: somebody with a free slot should have it.
        return ChunkResult { chunk, stop: Some(StopReason::HandBack) };
    }
    let commits = chunk.ledger.commits;
    let stop = match tokio::time::timeout(limit - waited, chunk.work(&shutdown)).await {
        Ok(Ok(())) => None,
        Ok(Err(stop)) => Some(stop),
        // It is slow, but gets on: no attempt is lost by that.
        Err(_) if chunk.ledger.commits > commits => Some(StopReason::HandBack),
        Err(_) => Some(StopReason::Failed(EngineError::Data(ConnectorError::Database(
            windlass_drivers::Error::new(
                ErrorClass::Retry,
                format!("the chunk took longer than chunk.timeout ({timeout:?})"),
            ),
        )))),
    };
    ChunkResult { chunk, stop }
}

impl ChunkResult {
    /// Whether nothing is to be said of the chunk but that it is done: then several are completed
    /// together.
    pub(crate) fn is_plain(&self) -> bool {
        let chunk = &self.chunk;
        let plain = chunk.ledger.counts.dead == 0 && chunk.part.is_none();
        self.stop.is_none() && plain && !chunk.job.is_redrive()
    }

    pub(crate) fn job(&self) -> windlass_core::JobId {
        self.chunk.lease().chunk.job
    }

    /// Completes plain chunks of one job in one go; those that do not go together, one by one.
    pub(crate) async fn end_together(worked: Vec<ChunkResult>) -> Vec<ClaimOutcome> {
        let chunk = |worked: &ChunkResult| (worked.chunk.lease(), worked.chunk.pulse().progress());
        let leases: Vec<(Lease, Progress)> = worked.iter().map(chunk).collect();
        // The heartbeat forgets them first: its beat and this would lock the same rows in two orders.
        worked.iter().for_each(|worked| worked.chunk.hold.forget());
        if let Some(first) = worked.first()
            && let Ok(true) = first.chunk.hold.store().complete_together(&leases).await
        {
            return vec![ClaimOutcome::Completed; worked.len()];
        }
        let mut ended = Vec::with_capacity(worked.len());
        for worked in worked {
            ended.push(worked.end().await);
        }
        ended
    }

    /// Tells the store, which ends the claim one way or another. Where items died, that may have
    /// exceeded the failure budget: the heartbeat asks at once how the other chunks stand.
    pub(crate) async fn end(self) -> ClaimOutcome {
        let (store, heartbeat) =
            (self.chunk.hold.store().clone(), self.chunk.hold.heartbeat().clone());
        let died = self.chunk.ledger.counts.dead > 0;
        let ended = match self.stop {
            None => self.chunk.finish().await,
            Some(stop) => self.chunk.end(stop).await,
        };
        if died && let Err(error) = heartbeat.beat(store.as_ref()).await {
            tracing::warn!(%error, "a heartbeat failed");
        }
        ended
    }
}

impl Chunk {
    pub(crate) fn new(
        job: Arc<JobContext>,
        hold: ChunkLease,
        claimed: ClaimedChunk,
        ledger: Ledger,
    ) -> Chunk {
        let size = job.commit_items();
        let (opened, marked, part) = (Instant::now(), false, None);
        let chunk = Chunk { job, hold, claimed, ledger, opened, size, marked, part };
        chunk.report_progress();
        chunk
    }

    pub(crate) fn lease(&self) -> Lease {
        self.hold.lease()
    }

    pub(crate) fn pulse(&self) -> &Arc<LeaseState> {
        self.hold.pulse()
    }

    /// Hands the chunk back untouched.
    pub(crate) async fn hand_back(self) -> ClaimOutcome {
        self.end(StopReason::HandBack).await
    }

    async fn work(&mut self, shutdown: &Shutdown) -> Result<(), StopReason> {
        let mut reopened = 0;
        let mut begun = false;
        loop {
            match self.pulse().standing() {
                Standing::Lost => return Err(StopReason::Lost),
                Standing::HandBack => return Err(StopReason::HandBack),
                Standing::Held if shutdown.requested() || self.is_unwanted() => {
                    return Err(StopReason::HandBack);
                }
                // Claimed ahead or between two commits: nothing is lost, and no attempt is counted.
                Standing::Held if self.job.availability.outage().is_some() => {
                    return Err(StopReason::HandBack);
                }
                Standing::Held => {}
            }
            self.job.check_identity()?;
            let commits = self.ledger.commits;
            let round = async {
                if !begun {
                    self.begin().await?;
                    begun = true;
                }
                self.round().await
            };
            match round.await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The connection broke, perhaps between COMMIT and its answer. The ledger knows.
                Err(StopReason::Failed(EngineError::Data(error)))
                    if error.class() == Some(ErrorClass::Connection)
                        && reopened < MOST_REOPENINGS =>
                {
                    tracing::debug!(chunk = %self.lease().chunk, %error, "connection lost; reading the ledger to find the last committed batch");
                    self.reopen().await?;
                    reopened += 1;
                    // What was on trial when the connection broke is taken up again.
                    begun = false;
                }
                Err(stop) => return Err(stop),
            }
            if self.ledger.commits > commits {
                reopened = 0;
            }
        }
    }

    /// How urgent its job is.
    pub(crate) fn priority(&self) -> u8 {
        self.job.snapshot.request.priority()
    }

    /// Whether the chunk is to be handed back as soon as nothing is on its way.
    pub(crate) fn is_called_back(&self) -> bool {
        self.hold.heartbeat().is_stopping()
            || self.pulse().standing() != Standing::Held
            || self.is_unwanted()
    }

    /// Whether an operator has stopped the job type, or lowered its limit below this chunk.
    fn is_unwanted(&self) -> bool {
        self.job.is_stopped() || self.job.controls.is_over_limit(self.lease())
    }

    /// Before the first batch: what an earlier claim left on trial, and the mark.
    async fn begin(&mut self) -> Result<(), StopReason> {
        if self.job.step.is_some() && !self.ledger.counts.add_up() {
            poison::resume(self).await?;
        }
        if self.job.definition().step.mark.is_some()
            && let Some(rest) = self.rest()
        {
            self.job.target.mark(&self.job.scope, &self.ledger, &rest).await?;
            self.marked = true;
        }
        Ok(())
    }

    /// One batch, or one go at the held items. True when there is nothing left to do.
    async fn round(&mut self) -> Result<bool, StopReason> {
        let Some(rest) = self.rest() else {
            if self.ledger.counts.add_up() {
                return Ok(true);
            }
            self.retry_held().await?;
            return Ok(false);
        };
        throttle::wait(self).await?;
        let begun = Instant::now();
        match &self.job.step {
            None if self.job.definition().step.kind.makes_parts() => {
                map_export::run_batch(self, rest).await?
            }
            None => set_based::run_batch(self, rest).await?,
            Some(_) if poison::is_due(self) => poison::run_batch(self, rest).await?,
            Some(_) => self.run_batch(rest).await?,
        }
        self.job.throttle.took(begun.elapsed());
        self.job.availability.succeeded();
        Ok(false)
    }

    /// What of the chunk is still to be done.
    fn rest(&self) -> Option<KeySet> {
        self.ledger.cursor.rest(&self.claimed.key_set)
    }

    /// An key_set of exactly these keys, within what the chunk may reach.
    pub(crate) fn of_keys(&self, keys: Vec<windlass_core::Key>) -> KeySet {
        KeySet { within: self.claimed.key_set.within.clone(), keys: Keys::List(keys) }
    }

    /// Commits, and remembers the ledger row as it is now.
    pub(crate) async fn commit(&mut self, commit: Commit) -> Result<(), ConnectorError> {
        let committed = self.job.target.commit(&self.job.scope, &self.ledger, commit).await?;
        self.ledger = committed.ledger;
        self.report_progress();
        Ok(())
    }

    /// Fences again at our own epoch and reads how far the ledger is.
    pub(crate) async fn fence_again(&mut self) -> Result<(), StopReason> {
        let Lease { chunk, epoch, nonce } = self.lease();
        let fence = Fence { chunk, epoch, nonce, lost: false };
        let ledger = self.job.target.fence(&[fence]).await?.pop();
        self.ledger = ledger.flatten().ok_or(StopReason::Lost)?;
        self.report_progress();
        Ok(())
    }

    async fn reopen(&mut self) -> Result<(), StopReason> {
        self.fence_again().await?;
        // As after the first fence: the row may have been pruned and made anew by this one.
        match self.hold.store().confirm(&[self.lease()]).await?.first() {
            Some(Standing::Held) => Ok(()),
            Some(Standing::HandBack) => Err(StopReason::HandBack),
            Some(Standing::Lost) | None => Err(StopReason::Lost),
        }
    }

    pub(crate) fn report_progress(&self) {
        let Ledger { cursor, counts, .. } = self.ledger.clone();
        self.pulse().report(Progress { cursor, counts });
    }

    /// Everything is committed: tells the store.
    async fn finish(self) -> ClaimOutcome {
        let chunk = self.lease().chunk;
        match self.copy_letters().await {
            Ok(Kept::Yes) => {}
            Ok(Kept::Lost) => return ClaimOutcome::Lost,
            Err(error) => {
                tracing::error!(%chunk, %error, "dead letters could not be copied to the store; they stay in the ledger and the chunk is not completed");
                return self.end(StopReason::Failed(error)).await;
            }
        }
        // The letters that a redrive settles: those of the keys it was given.
        let settled: Vec<String> = match &self.claimed.key_set.keys {
            Keys::List(keys) if self.job.is_redrive() => {
                keys.iter().map(|key| key.to_text()).collect()
            }
            _ => Vec::new(),
        };
        let completed = match &self.part {
            Some(part) => self.hold.complete_part(part).await,
            None => self.hold.complete(&settled).await,
        };
        match completed {
            Ok(Kept::Yes) => ClaimOutcome::Completed,
            Ok(Kept::Lost) => {
                if let Some(part) = &self.part {
                    destination::forget(&self.job, part).await;
                }
                ClaimOutcome::Lost
            }
            Err(error) => {
                tracing::warn!(%chunk, %error, "committed, but the store did not take it; the next claim will");
                ClaimOutcome::Lost
            }
        }
    }

    /// Copies the chunk's dead letters to the store, page by page so that memory stays flat.
    pub(crate) async fn copy_letters(&self) -> crate::Result<Kept> {
        if self.ledger.counts.dead == 0 {
            return Ok(Kept::Yes);
        }
        let mut after: Option<String> = None;
        loop {
            let lease = self.lease();
            let page = self
                .job
                .target
                .deferred(
                    lease.chunk,
                    DeferredPage::new(DeferredState::Dead, after.as_deref(), LETTERS_PER_COPY),
                )
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.to_text());
            let letters: Vec<NewDeadLetter> = page.into_iter().map(letter).collect();
            let added =
                self.hold.persist(|| self.hold.store().add_letters(lease, &letters)).await?;
            if added == Kept::Lost {
                return Ok(Kept::Lost);
            }
        }
        Ok(Kept::Yes)
    }

    /// Ends the claim short of the chunk's end.
    async fn end(mut self, stop: StopReason) -> ClaimOutcome {
        let chunk = self.lease().chunk;
        let retry = self.job.definition().retry.clone();
        if let Some(part) = self.part.take() {
            destination::forget(&self.job, &part).await;
        }
        let error = match stop {
            StopReason::Lost => return ClaimOutcome::Lost,
            StopReason::HandBack => {
                if self.marked {
                    self.unmark().await;
                }
                report(self.hold.release(None, false, Duration::ZERO).await);
                return ClaimOutcome::HandedBack;
            }
            StopReason::Wait(wait) => {
                report(self.hold.release(None, false, wait).await);
                return ClaimOutcome::HandedBack;
            }
            StopReason::Failed(EngineError::Step(StepError::Unavailable { reason, wait })) => {
                return self.hold_type(&reason, wait).await;
            }
            StopReason::Failed(EngineError::Step(StepError::Saturated)) => {
                report(self.hold.release(None, false, Duration::from_secs(1)).await);
                return ClaimOutcome::HandedBack;
            }
            StopReason::Failed(EngineError::Step(StepError::Fatal(reason))) => {
                return self.pause_job(&reason).await;
            }
            StopReason::Failed(error) => error,
        };
        // Logged once for the connection and not for each of its chunks.
        if !self.job.availability.failed(&error) {
            tracing::warn!(%chunk, %error, "the chunk failed");
        }
        let message = error.to_string();
        let failed_before = self.claimed.attempts;
        let (again, attempt) = match error.kind() {
            // The database being away is not a failure of the work.
            ErrorKind::Unavailable => (Some(retry.backoff_after(failed_before + 1)), false),
            ErrorKind::Transient => (retry.wait_after(failed_before + 1), true),
            ErrorKind::Permanent => (None, false),
        };
        if let Some(wait) = again {
            report(self.hold.release(Some(&message), attempt, wait).await);
            return ClaimOutcome::HandedBack;
        }
        self.unmark().await;
        let settled = match self.settle().await {
            Ok(settled) => settled,
            Err(stop) => return self.fail_later(stop, &message).await,
        };
        if let Err(error) = self.copy_letters().await {
            tracing::warn!(%chunk, %error, "its dead letters stay in the ledger until it is retried");
        }
        report(self.hold.fail(&message, !attempt, &settled).await);
        ClaimOutcome::Failed
    }

    /// Hands the chunk back and holds its job type, for everybody, until its step may be there
    /// again. That is no failure of the work, so it counts as no attempt.
    async fn hold_type(self, reason: &str, wait: Duration) -> ClaimOutcome {
        let job_type = &self.job.definition().name;
        let reason = format!("held, and tried again by itself: {reason}");
        match self.hold.store().hold(job_type, &reason, wait).await {
            Ok(true) => tracing::warn!(%job_type, ?wait, "{reason}"),
            // Another chunk of it was faster.
            Ok(false) => {}
            Err(error) => tracing::warn!(%job_type, %error, "the store did not take the hold"),
        }
        report(self.hold.release(Some(&reason), false, wait).await);
        ClaimOutcome::HandedBack
    }

    /// Hands the chunk back and pauses its job: somebody must mend something first.
    pub(crate) async fn pause_job(self, reason: &str) -> ClaimOutcome {
        let (store, job) = (self.hold.store().clone(), self.lease().chunk.job);
        tracing::warn!(%job, "paused: {reason}");
        report(self.hold.release(Some(reason), false, Duration::ZERO).await);
        let reason = format!("{reason}; mend that, then resume");
        // Another chunk of the job may have been faster.
        if let Err(error) = store.pause(job, Some(&reason)).await {
            tracing::debug!(%job, %error, "not paused");
        }
        ClaimOutcome::HandedBack
    }

    /// Ends a chunk of a cancelled job, which this claim has fenced.
    pub(crate) async fn cancel(mut self) -> crate::Result<Kept> {
        self.unmark().await;
        let settled = match self.job.is_redrive() {
            true => {
                settlement::settled_keys(self.job.target.as_ref(), &self.claimed, &self.ledger)
                    .await?
            }
            false => Vec::new(),
        };
        if let Err(error) = self.copy_letters().await {
            tracing::warn!(chunk = %self.lease().chunk, %error, "its dead letters stay in the ledger");
        }
        Ok(self.hold.cancel(&settled).await?)
    }

    /// Clears the mark of a chunk that ends, or is left, without having done all of it.
    async fn unmark(&mut self) {
        let Some(rest) = self.rest().filter(|_| self.job.definition().step.mark.is_some()) else {
            return;
        };
        let cursor = self.ledger.cursor.clone();
        match self.commit(Commit::new(cursor, Effect::Unmark(rest))).await {
            // Whoever holds the chunk now sees to the mark, too.
            Ok(()) | Err(ConnectorError::LeaseLost) => {}
            Err(error) => {
                tracing::warn!(chunk = %self.lease().chunk, %error, "its mark could not be cleared");
            }
        }
    }
}

fn letter(held: DeferredItem) -> NewDeadLetter {
    NewDeadLetter {
        key: held.key.to_text(),
        record: held.record,
        error: held.error,
        context: held.context,
        attempts: held.attempts,
    }
}
