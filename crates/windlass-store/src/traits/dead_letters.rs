//! Table `windlass_dead_letters`.

use async_trait::async_trait;
use windlass_core::{DeadLetterStatus, JobId};

use crate::{
    DeadLetter, DeadLetterFilter, DeadLetterGroup, Lease, NewDeadLetter, NewJob, RedriveRoot,
    Result,
};

/// Stores, lists, marks and redrives dead letters.
#[async_trait]
pub trait DeadLetterStore: Send + Sync {
    /// Lists dead letters, newest first.
    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>>;
    /// Lists the ids that begin with this text or whose last eight characters are this text, newest first.
    async fn matching_dead_letters(&self, text: &str, limit: u32) -> Result<Vec<uuid::Uuid>>;
    /// Groups dead letters by error, most frequent first. The filter's limit applies to groups.
    async fn dead_letter_groups(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetterGroup>>;
    /// Counts the dead letters of each job type that are `new`. Counting stops at `max` per type.
    async fn count_dead_letters(&self, max: i64) -> Result<Vec<(String, i64)>>;
    /// Copies dead letters of a chunk from the ledger, before the chunk completes. May be repeated.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the lease is lost.
    async fn add_dead_letters(&self, lease: Lease, letters: &[NewDeadLetter]) -> Result<()>;
    /// Lists the original jobs with matching dead letters that can be redriven now.
    async fn redrivable(&self, filter: &DeadLetterFilter) -> Result<Vec<RedriveRoot>>;
    /// Submits a job on the keys of the original job's matching letters that are `new` and not
    /// being redriven. The letters name this job from then on. Returns the job and the number of
    /// letters, or `None` when no letter is left.
    async fn redrive(
        &self,
        original: JobId,
        filter: &DeadLetterFilter,
        job: NewJob,
    ) -> Result<Option<(JobId, u64)>>;
    /// Sets the status of matching letters that are `new` and not being redriven. Returns their
    /// number.
    async fn mark_dead_letters(
        &self,
        filter: &DeadLetterFilter,
        to: DeadLetterStatus,
    ) -> Result<u64>;
}
