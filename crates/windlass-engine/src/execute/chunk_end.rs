//! The end of a chunk's lease: completed, released, failed or cancelled, and recorded in the store.

use crate::EngineError;
use crate::execute::chunk_runner::{ChunkRunner, LeaseOutcome, StopReason};
use crate::execute::lease::log_unrecorded;
use crate::execute::{settlement, unwritten};
use crate::merge::destination;
use crate::operate::job_log;
use crate::step::StepError;
use std::time::Duration;
use windlass_connectors::{
    Commit, ConnectorError, DeferredItem, DeferredPage, DeferredState, Effect,
};
use windlass_core::{ErrorKind, Keys};
use windlass_drivers::ErrorClass;
use windlass_store::{NewDeadLetter, Split, StoreError};

/// Dead letters that are copied to the store in one call.
const DEAD_LETTERS_PER_COPY: u32 = 100;
/// How long a chunk is released if the step has no capacity.
const SATURATED_WAIT: Duration = Duration::from_secs(1);

impl ChunkRunner {
    /// Copies dead letters to the store and completes the chunk.
    pub(super) async fn complete(mut self) -> LeaseOutcome {
        let chunk = self.lease().chunk;
        if let Err(stop) = self.flush().await {
            return self.end(stop).await;
        }
        match self.copy_dead_letters().await {
            Ok(()) => {}
            Err(error) if error.is_lease_lost() => return LeaseOutcome::LeaseLost,
            Err(error) => {
                tracing::error!(%chunk, %error, "failed to copy dead letters to the store; they stay in the ledger and the chunk is not completed");
                return self.end(StopReason::Failed(error)).await;
            }
        }
        if let Some(split) = self.split.take() {
            return self.end_split(&split).await;
        }
        // A redrive settles the dead letters of the keys it was given.
        let settled: Vec<String> = match &self.leased.key_set.keys {
            Keys::List(keys) if self.job.is_redrive() => {
                keys.iter().map(|key| key.to_text()).collect()
            }
            _ => Vec::new(),
        };
        let summary = self.summary();
        // Planning by blocks estimates the number of records.
        let more_items = match self.leased.key_set.blocks {
            Some(_) => self.ledger.counts.read - self.leased.items,
            None => 0,
        };
        match self.lease.complete(&settled, self.part.as_ref(), more_items).await {
            Ok(()) => {
                summary.log();
                LeaseOutcome::Completed
            }
            Err(StoreError::LeaseLost) => {
                if let Some(part) = &self.part {
                    destination::delete_orphaned_part(&self.job, part).await;
                }
                LeaseOutcome::LeaseLost
            }
            Err(error) => {
                tracing::warn!(%chunk, %error, "failed to complete a committed chunk in the store; the next leaseholder completes it");
                LeaseOutcome::LeaseLost
            }
        }
    }

    /// Completes the chunk at its cursor and adds the rest as new chunks.
    async fn end_split(self, split: &Split) -> LeaseOutcome {
        let (chunk, summary) = (self.lease().chunk, self.summary());
        match self.lease.split(split).await {
            Ok(true) => {
                let chunks = split.rest.len();
                tracing::info!(%chunk, chunks, "chunk split, because slots were free: its rest became new chunks");
                summary.log();
                LeaseOutcome::Completed
            }
            Ok(false) => LeaseOutcome::HandedBack,
            Err(error) => {
                log_unrecorded(Err(error));
                LeaseOutcome::LeaseLost
            }
        }
    }

    /// Copies the chunk's dead letters to the store, page by page so that memory stays flat. A letter that the
    /// store refuses does not keep the others; the error names the items.
    pub(crate) async fn copy_dead_letters(&self) -> crate::Result<()> {
        if self.ledger.counts.dead == 0 {
            return Ok(());
        }
        let mut refused = RefusedLetters::default();
        if self.job.definition().step.kind.makes_parts() {
            for letters in self.dead_letters.chunks(DEAD_LETTERS_PER_COPY as usize) {
                self.add_dead_letters(letters, &mut refused).await?;
            }
            return refused.result();
        }
        let mut after: Option<String> = None;
        loop {
            let lease = self.lease();
            let page = self
                .job
                .target
                .deferred(
                    lease.chunk,
                    DeferredPage::new(DeferredState::Dead, after.as_deref(), DEAD_LETTERS_PER_COPY),
                )
                .await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.to_text());
            let letters: Vec<NewDeadLetter> = page.into_iter().map(dead_letter).collect();
            self.add_dead_letters(&letters, &mut refused).await?;
        }
        refused.result()
    }

    /// Adds dead letters to the store: together, or one by one if the store refuses one of them.
    async fn add_dead_letters(
        &self,
        letters: &[NewDeadLetter],
        refused: &mut RefusedLetters,
    ) -> crate::Result<()> {
        let (store, lease) = (self.lease.store(), self.lease());
        let is_refused = |error: &StoreError| matches!(error, StoreError::Database(error) if error.class == ErrorClass::Data);
        match self.lease.persist(|| store.add_dead_letters(lease, letters)).await {
            Err(error) if is_refused(&error) => {}
            added => {
                added?;
                job_log::log_dead_letters(lease.chunk, letters);
                return Ok(());
            }
        }
        for letter in letters {
            let one = std::slice::from_ref(letter);
            match self.lease.persist(|| store.add_dead_letters(lease, one)).await {
                Err(error) if is_refused(&error) => {
                    unwritten::log(self, &letter.key, &letter.record, &error.to_string());
                    refused.keys.push(letter.key.clone());
                    refused.error = error.to_string();
                }
                added => {
                    added?;
                    job_log::log_dead_letters(lease.chunk, one);
                }
            }
        }
        Ok(())
    }

    /// Ends the lease before the end of the chunk.
    pub(super) async fn end(mut self, stop: StopReason) -> LeaseOutcome {
        if let Some(part) = self.part.take() {
            destination::delete_orphaned_part(&self.job, &part).await;
        }
        match stop {
            StopReason::LeaseLost => LeaseOutcome::LeaseLost,
            // A throttled chunk ends only if it was not given to `ThrottledChunks`.
            StopReason::HandBack | StopReason::Throttled(_) => {
                if self.marked {
                    self.unmark().await;
                }
                self.release(None, Duration::ZERO).await
            }
            StopReason::Wait(wait) => self.release(None, wait).await,
            StopReason::Failed(EngineError::Step(StepError::Unavailable { reason, wait })) => {
                self.suspend_job_type(&reason, wait).await
            }
            StopReason::Failed(EngineError::Step(StepError::Saturated)) => {
                self.release(None, SATURATED_WAIT).await
            }
            StopReason::Failed(EngineError::Step(StepError::Fatal(reason))) => {
                self.pause_job(&reason).await
            }
            StopReason::Failed(error) if self.is_snapshot_lost(&error) => {
                self.end_unread(error).await
            }
            StopReason::Failed(error) => self.fail(error).await,
        }
    }

    /// Releases the chunk without counting a failed attempt.
    pub(super) async fn release(self, error: Option<&str>, wait: Duration) -> LeaseOutcome {
        log_unrecorded(self.lease.release(error, false, wait).await);
        LeaseOutcome::HandedBack
    }

    /// Releases a failed chunk for another attempt, or ends it `FAILED` if none is left.
    pub(super) async fn fail(mut self, error: EngineError) -> LeaseOutcome {
        let chunk = self.lease().chunk;
        // An outage is logged once for the connection, not for each of its chunks.
        if !self.job.availability.failed(&error) {
            tracing::warn!(%chunk, %error, "chunk failed");
        }
        let message = error.to_string();
        let retry = self.job.definition().retry.clone();
        let failures = self.leased.attempts + 1;
        let (next_attempt, counts_as_attempt) = match error.kind() {
            ErrorKind::Unavailable => (Some(retry.backoff_after(failures)), false),
            ErrorKind::Transient => (retry.wait_after(failures), true),
            ErrorKind::Permanent => (None, false),
        };
        if let Some(wait) = next_attempt {
            log_unrecorded(self.lease.release(Some(&message), counts_as_attempt, wait).await);
            return LeaseOutcome::HandedBack;
        }
        self.unmark().await;
        let settled = match self.settle().await {
            Ok(settled) => settled,
            Err(stop) => return self.fail_later(stop, &message).await,
        };
        if let Err(stop) = self.flush().await {
            return self.fail_later(stop, &message).await;
        }
        if let Err(error) = self.copy_dead_letters().await {
            tracing::warn!(%chunk, %error, "failed to copy dead letters; they stay in the ledger until the chunk is retried");
        }
        let fail_job = !counts_as_attempt;
        log_unrecorded(self.lease.fail(&message, fail_job, &settled).await);
        LeaseOutcome::Failed
    }

    /// Suspends the job type on all workers until its step may be available again, and releases
    /// the chunk. This is not a failure of the work, so no attempt is counted.
    async fn suspend_job_type(self, reason: &str, wait: Duration) -> LeaseOutcome {
        let job_type = &self.job.definition().name;
        let reason = format!("job type suspended, retried automatically: {reason}");
        match self.lease.store().suspend(job_type, &reason, wait).await {
            Ok(true) => tracing::warn!(%job_type, ?wait, "{reason}"),
            // Another chunk has suspended it already.
            Ok(false) => {}
            Err(error) => tracing::warn!(%job_type, %error, "failed to suspend the job type"),
        }
        self.release(Some(&reason), wait).await
    }

    /// Pauses the job, because a person has to correct something, and releases the chunk.
    pub(crate) async fn pause_job(self, reason: &str) -> LeaseOutcome {
        let (store, job) = (self.lease.store().clone(), self.lease().chunk.job);
        tracing::warn!(%job, reason, "job paused");
        let outcome = self.release(Some(reason), Duration::ZERO).await;
        let reason = format!("{reason}; correct this, then resume the job");
        // Another chunk of the job may have paused it already.
        if let Err(error) = store.pause(job, Some(&reason)).await {
            tracing::debug!(%job, %error, "job was not paused");
        }
        outcome
    }

    /// Ends a chunk of a cancelled job. The chunk must be fenced.
    pub(crate) async fn cancel(mut self) -> crate::Result<()> {
        self.unmark().await;
        match self.flush().await {
            Ok(()) => {}
            Err(StopReason::Failed(error)) => return Err(error),
            Err(_) => return Err(ConnectorError::LeaseLost.into()),
        }
        let settled = match self.job.is_redrive() {
            true => {
                settlement::settled_keys(self.job.target.as_ref(), &self.leased, &self.ledger)
                    .await?
            }
            false => Vec::new(),
        };
        if let Err(error) = self.copy_dead_letters().await {
            let chunk = self.lease().chunk;
            tracing::warn!(%chunk, %error, "failed to copy dead letters; they stay in the ledger");
        }
        Ok(self.lease.cancel(&settled).await?)
    }

    /// Clears the mark on the rows after the cursor, which are not committed.
    async fn unmark(&mut self) {
        let Some(remaining) =
            self.remaining().filter(|_| self.job.definition().step.mark.is_some())
        else {
            return;
        };
        let cursor = self.ledger.cursor.clone();
        match self.commit(Commit::new(cursor, Effect::Unmark(remaining))).await {
            // The next leaseholder clears the mark.
            Ok(()) | Err(ConnectorError::LeaseLost) => {}
            Err(error) => {
                let chunk = self.lease().chunk;
                tracing::warn!(%chunk, %error, "failed to clear the `step.mark` column of the chunk's rows");
            }
        }
    }
}

/// The items whose dead letters the store refuses, and the last reason.
#[derive(Default)]
struct RefusedLetters {
    keys: Vec<String>,
    error: String,
}

impl RefusedLetters {
    fn result(self) -> crate::Result<()> {
        match self.keys.is_empty() {
            true => Ok(()),
            false => Err(unwritten::not_written(&self.keys, &self.error)),
        }
    }
}

fn dead_letter(item: DeferredItem) -> NewDeadLetter {
    NewDeadLetter {
        key: item.key.to_text(),
        record: item.record,
        error: item.error,
        context: item.context,
        attempts: item.attempts,
    }
}
