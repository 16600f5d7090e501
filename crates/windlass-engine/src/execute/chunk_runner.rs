//! The chunk runner: works one chunk from its cursor to its end, one commit after another.
//!
//! A chunk arrives leased, fenced and confirmed. Each round commits one batch with a
//! compare-and-set on the ledger row. Items that the cursor passes but that are not done are
//! deferred in the same transaction. When the cursor is at the end and nothing is deferred, the
//! dead letters and the counts are copied to the store, and the chunk is completed.

use crate::EngineError;
use crate::execute::heartbeat::LeaseState;
use crate::execute::lease::ChunkLease;
use crate::execute::read_ahead::ReadAhead;
use crate::execute::slot::Slot;
pub(crate) use crate::execute::stop_reason::{LeaseOutcome, StopReason, ThrottleCause};
use crate::execute::straggler::ChunkSpeed;
use crate::execute::{poison, set_based, throttle, unwritten};
use crate::job_context::JobContext;
use crate::merge::map_export;
use crate::operate::job_log::{self, ChunkSummary};
use crate::shutdown::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{Commit, ConnectorError, Ledger};
use windlass_core::{Counts, Key, KeySet, Keys};
use windlass_drivers::ErrorClass;
use windlass_store::{Lease, LeaseStatus, LeasedChunk, NewDeadLetter, NewPart, Progress, Split};

/// A chunk in progress: its lease, and its ledger row as of the last commit.
pub(crate) struct ChunkRunner {
    pub(crate) job: Arc<JobContext>,
    pub(crate) lease: ChunkLease,
    pub(crate) leased: LeasedChunk,
    pub(crate) ledger: Ledger,
    /// When it was acquired. Waiting for a slot or for a rate limit counts towards `chunk.timeout`.
    pub(super) acquired: Instant,
    /// The commits and the counts in the ledger when it was acquired.
    acquired_commits: i64,
    acquired_counts: Counts,
    /// Its place in a slot, once it was given one.
    pub(super) slot: Option<Slot>,
    /// Its first batch, read while it waited for a slot.
    pub(super) ahead: Option<ReadAhead>,
    /// When it was first in a slot.
    first_slot: Option<Instant>,
    /// Whether this lease has resumed suspect items and marked rows.
    started: bool,
    /// Whether the next batch has waited for its rate limit and the health of its database.
    pub(super) may_start_batch: bool,
    /// Items of the next batch. Halved when an item makes a statement fail, and lowered when
    /// records are so wide that fewer of them fill a batch.
    pub(crate) batch_size: u32,
    /// Whether this lease has marked its rows. The mark is cleared when the lease ends.
    pub(super) marked: bool,
    /// The rows that have got the mark, those of earlier leases included. `None` without `step.mark`.
    rows_marked: Option<i64>,
    /// The part that a `map` or `export` chunk produced.
    pub(crate) part: Option<NewPart>,
    /// How fast it is.
    pub(super) speed: ChunkSpeed,
    /// The new chunks of its remaining records, if it ends at its cursor.
    pub(super) split: Option<Split>,
    /// Why the last dead letter could not be written.
    pub(crate) unwritten_error: Option<String>,
    /// The records that an export could not represent. It has no ledger that would keep them.
    pub(crate) dead_letters: Vec<NewDeadLetter>,
}

/// How often a chunk recovers from a broken connection without a commit in between.
const MAX_RECOVERIES: u32 = 3;

/// A chunk whose work is over: everything is committed, or something stopped it.
pub(crate) struct ChunkResult {
    pub(super) chunk: ChunkRunner,
    pub(super) stop: Option<StopReason>,
}

/// Works a chunk until it is committed or something stops it.
pub(crate) async fn run(mut chunk: ChunkRunner, shutdown: Shutdown) -> ChunkResult {
    chunk.lease_state().set_in_slot(true);
    let timeout = chunk.job.definition().chunk.timeout;
    // A little below the store's own limit, so that a timeout counts as a failed attempt and not
    // as a lost lease.
    let limit = timeout - (timeout / 10).min(Duration::from_secs(1));
    let waited = chunk.acquired.elapsed();
    if waited > timeout / 2 && !chunk.made_progress() {
        // It waited too long for a slot here: another worker may have one free.
        return ChunkResult { chunk, stop: Some(StopReason::HandBack) };
    }
    let limit = limit.saturating_sub(waited);
    let stop = match tokio::time::timeout(limit, chunk.run_batches(&shutdown)).await {
        Ok(Ok(())) => None,
        Ok(Err(stop)) => Some(stop),
        // Slow, but it made progress: this does not count as a failed attempt.
        Err(_) if chunk.made_progress() => Some(StopReason::HandBack),
        Err(_) => Some(timed_out(timeout)),
    };
    ChunkResult { chunk, stop }
}

/// Waits outside of a slot until the next batch of a chunk may start. Returns the chunk, or how its
/// lease ended.
pub(crate) async fn wait_outside(
    mut chunk: ChunkRunner,
    cause: ThrottleCause,
) -> Result<ChunkRunner, LeaseOutcome> {
    chunk.lease_state().set_in_slot(false);
    match throttle::wait(&chunk, cause).await {
        Ok(()) => {
            chunk.may_start_batch = true;
            Ok(chunk)
        }
        Err(stop) => Err(ChunkResult { chunk, stop: Some(stop) }.end().await),
    }
}

fn timed_out(timeout: Duration) -> StopReason {
    let message = format!("the chunk took longer than chunk.timeout ({timeout:?})");
    ConnectorError::Database(windlass_drivers::Error::new(ErrorClass::Retry, message)).into()
}

impl ChunkResult {
    /// Whether the store only has to complete the chunk: no dead letters, no part, no redrive.
    /// Such chunks are completed in groups.
    pub(crate) fn is_simple(&self) -> bool {
        let chunk = &self.chunk;
        let nothing_to_copy = chunk.ledger.counts.dead == 0 && chunk.part.is_none();
        let is_whole = chunk.split.is_none();
        self.stop.is_none() && nothing_to_copy && is_whole && !chunk.job.is_redrive()
    }

    pub(crate) fn job(&self) -> windlass_core::JobId {
        self.chunk.lease().chunk.job
    }

    /// What the chunk waits for, if it must leave its slot before the next batch.
    pub(crate) fn throttle_cause(&self) -> Option<ThrottleCause> {
        match self.stop {
            Some(StopReason::Throttled(cause)) => Some(cause),
            _ => None,
        }
    }

    /// The chunk of a result that is not recorded, because the chunk continues.
    pub(crate) fn into_chunk(self) -> ChunkRunner {
        self.chunk
    }

    /// Records the end of the lease in the store. If items died, the failure budget may be
    /// exceeded: a heartbeat at once tells the other chunks whether to stop.
    pub(crate) async fn end(self) -> LeaseOutcome {
        let (store, heartbeat) =
            (self.chunk.lease.store().clone(), self.chunk.lease.heartbeat().clone());
        let items_died = self.chunk.ledger.counts.dead > 0;
        let job = self.job();
        let outcome = match self.stop {
            None => self.chunk.complete().await,
            Some(stop) => self.chunk.end(stop).await,
        };
        if items_died && let Err(error) = heartbeat.beat(store.as_ref()).await {
            tracing::warn!(%error, "heartbeat failed");
        }
        if matches!(outcome, LeaseOutcome::Completed | LeaseOutcome::Failed) {
            job_log::log_end_by_chunk(store.as_ref(), &heartbeat, job).await;
        }
        outcome
    }
}

impl ChunkRunner {
    pub(crate) fn new(
        job: Arc<JobContext>,
        lease: ChunkLease,
        leased: LeasedChunk,
        ledger: Ledger,
    ) -> ChunkRunner {
        let chunk = ChunkRunner {
            batch_size: job.commit_items(),
            acquired: Instant::now(),
            acquired_commits: ledger.commits,
            acquired_counts: ledger.counts,
            slot: None,
            ahead: None,
            first_slot: None,
            started: false,
            may_start_batch: false,
            marked: false,
            rows_marked: None,
            part: None,
            speed: ChunkSpeed::new(),
            split: None,
            unwritten_error: None,
            dead_letters: Vec::new(),
            job,
            lease,
            leased,
            ledger,
        };
        chunk.record_progress();
        chunk
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease.lease()
    }

    pub(crate) fn lease_state(&self) -> &Arc<LeaseState> {
        self.lease.state()
    }

    pub(crate) fn priority(&self) -> u8 {
        self.job.snapshot.request.priority()
    }

    /// When it was first in a slot; now if it was not yet.
    pub(crate) fn started_at(&mut self) -> Instant {
        *self.first_slot.get_or_insert_with(Instant::now)
    }

    pub(super) fn made_progress(&self) -> bool {
        self.ledger.commits > self.acquired_commits
    }

    /// Hands the chunk back untouched.
    pub(crate) async fn hand_back(self) -> LeaseOutcome {
        self.end(StopReason::HandBack).await
    }

    async fn run_batches(&mut self, shutdown: &Shutdown) -> Result<(), StopReason> {
        let mut recoveries = 0;
        loop {
            self.enter_slot_to_work().await;
            match self.lease_state().status() {
                LeaseStatus::Lost => return Err(StopReason::LeaseLost),
                LeaseStatus::HandBack => return Err(StopReason::HandBack),
                LeaseStatus::Held if shutdown.requested() || self.is_unwanted() => {
                    return Err(StopReason::HandBack);
                }
                // The database is unavailable: between two commits nothing is lost, and no attempt
                // is counted.
                LeaseStatus::Held if self.job.availability.outage().is_some() => {
                    return Err(StopReason::HandBack);
                }
                LeaseStatus::Held => {}
            }
            self.job.check_identity()?;
            let commits = self.ledger.commits;
            let round = async {
                if !self.started {
                    self.start().await?;
                    self.started = true;
                }
                self.round().await
            };
            match round.await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(StopReason::Failed(EngineError::Data(error)))
                    if error.class() == Some(ErrorClass::Connection)
                        && recoveries < MAX_RECOVERIES =>
                {
                    let chunk = self.lease().chunk;
                    tracing::debug!(%chunk, %error, "connection lost; reading the ledger to find the last committed batch");
                    self.recover().await?;
                    recoveries += 1;
                    // A suspect item that was being worked is resumed.
                    self.started = false;
                }
                Err(stop) => return Err(stop),
            }
            if self.ledger.commits > commits {
                recoveries = 0;
                if self.split_if_slow().await {
                    return Ok(());
                }
            }
        }
    }

    /// Whether the chunk must be handed back as soon as no call is in progress.
    pub(crate) fn must_hand_back(&self) -> bool {
        self.lease.heartbeat().is_stopping()
            || self.lease_state().status() != LeaseStatus::Held
            || self.is_unwanted()
    }

    /// Whether an operator has stopped the job type, or lowered its concurrency below this chunk.
    fn is_unwanted(&self) -> bool {
        self.job.is_stopped() || self.job.controls.is_over_limit(self.lease())
    }

    /// Before the first batch: resumes suspect items of an earlier lease, and marks the rows.
    async fn start(&mut self) -> Result<(), StopReason> {
        if self.job.step.is_some() && !self.ledger.counts.add_up() {
            poison::resume(self).await?;
        }
        unwritten::resume(self).await?;
        if self.job.definition().step.mark.is_some() {
            self.mark().await?;
        }
        Ok(())
    }

    /// Marks the rows after the cursor. Committed rows had the mark before.
    async fn mark(&mut self) -> Result<(), StopReason> {
        let mut rows = self.ledger.counts.read;
        if let Some(remaining) = self.remaining() {
            let (chunk, scope) = (self.lease().chunk, &self.job.scope);
            let marked = self.job.target.mark(scope, &self.ledger, &remaining).await?;
            job_log::log_marked(chunk, self.leased.items, scope.key(), &marked);
            rows += marked.rows;
            self.marked = true;
        }
        self.rows_marked = Some(rows);
        self.record_progress();
        Ok(())
    }

    /// What is logged when the chunk is completed.
    pub(super) fn summary(&self) -> ChunkSummary {
        let (before, counts) = (self.acquired_counts, self.ledger.counts);
        let updated = counts.processed - before.processed;
        ChunkSummary {
            chunk: self.lease().chunk,
            counts,
            marked: self.rows_marked.map(|rows| (rows - before.read, updated)),
            duration: self.acquired.elapsed(),
        }
    }

    /// Works one batch, or the deferred items that are due. True when nothing is left to do.
    async fn round(&mut self) -> Result<bool, StopReason> {
        let Some(remaining) = self.remaining() else {
            // `read == processed + skipped + dead` means that no item is deferred.
            if self.ledger.counts.add_up() {
                return unwritten::error(self).map_or(Ok(true), |error| Err(error.into()));
            }
            self.retry_deferred().await?;
            return Ok(false);
        };
        throttle::check(self).await?;
        let started = Instant::now();
        let (read, size) = (self.ledger.counts.read, self.batch_size);
        match &self.job.step {
            None if self.job.definition().step.kind.makes_parts() => {
                map_export::run_batch(self, remaining).await?
            }
            None => set_based::run_batch(self, remaining).await?,
            Some(_) if poison::is_suspected(self) => poison::run_batch(self, remaining).await?,
            Some(_) => self.run_batch(remaining).await?,
        }
        self.job.throttle.record_batch(started.elapsed());
        let items = u32::try_from(self.ledger.counts.read - read).unwrap_or_default();
        self.speed.record(items, started.elapsed());
        if let Some(pace) = &self.job.pace {
            pace.record(items, started.elapsed());
            // Unless bad rows or wide records made the batch smaller.
            if self.batch_size == size && self.job.step.is_some() {
                self.batch_size = self.job.commit_items();
            }
        }
        self.job.availability.succeeded();
        Ok(false)
    }

    /// The keys after the cursor: not committed yet.
    pub(super) fn remaining(&self) -> Option<KeySet> {
        self.ledger.cursor.remaining(&self.leased.key_set)
    }

    /// A key set of exactly these keys, within the filter value of the chunk.
    pub(crate) fn of_keys(&self, keys: Vec<windlass_core::Key>) -> KeySet {
        KeySet::new(self.leased.key_set.within.clone(), Keys::List(keys))
    }

    /// Commits a batch and keeps the ledger row as it is afterwards.
    pub(crate) async fn commit(&mut self, commit: Commit) -> Result<(), ConnectorError> {
        let exceptions = self.ledger.cursor.exceptions().to_vec();
        self.commit_except(commit, exceptions).await
    }

    /// Commits a batch, after which the cursor has these exceptions.
    pub(crate) async fn commit_except(
        &mut self,
        mut commit: Commit,
        exceptions: Vec<Key>,
    ) -> Result<(), ConnectorError> {
        commit.cursor = commit.cursor.except(exceptions);
        let committed = self.job.target.commit(&self.job.scope, &self.ledger, commit).await?;
        self.ledger = committed.ledger;
        self.record_progress();
        Ok(())
    }

    /// The exceptions of the cursor without these keys.
    pub(crate) fn exceptions_but(&self, keys: &[Key]) -> Vec<Key> {
        let exceptions = self.ledger.cursor.exceptions().iter();
        exceptions.filter(|key| !keys.contains(key)).cloned().collect()
    }

    /// Reads the ledger row again, which this lease has fenced. If the database has lost commits in a crash, the lease
    /// ends: a commit that is still in flight would match the row again after as many others.
    pub(crate) async fn fence_again(&mut self) -> Result<(), StopReason> {
        let ledger = self.job.target.fence_again(&self.ledger).await?;
        let ledger = ledger.ok_or(StopReason::LeaseLost)?;
        let lost = ledger.commits < self.ledger.commits;
        self.ledger = ledger;
        self.record_progress();
        if lost {
            let chunk = self.lease().chunk;
            tracing::warn!(%chunk, "the database lost commits of the chunk in a crash; they are done again");
            return Err(StopReason::HandBack);
        }
        Ok(())
    }

    /// Finds out after a broken connection whether the last commit was applied.
    async fn recover(&mut self) -> Result<(), StopReason> {
        self.fence_again().await?;
        // Not needed for safety: it ends the work of a lost lease before another batch.
        match self.lease.store().confirm(&[self.lease()]).await?.first() {
            Some(LeaseStatus::Held) => Ok(()),
            Some(LeaseStatus::HandBack) => Err(StopReason::HandBack),
            Some(LeaseStatus::Lost) | None => Err(StopReason::LeaseLost),
        }
    }

    pub(crate) fn record_progress(&self) {
        let Ledger { cursor, counts, .. } = self.ledger.clone();
        let marked = self.rows_marked;
        self.lease_state().record_progress(Progress { cursor, counts, marked });
    }
}
