//! Table `windlass_chunks`: leasing and ending chunks.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId};

use crate::{
    Capabilities, ChunkOutcome, ChunkRow, HandBack, Lease, LeasedChunk, NewPart, Progress, Result,
    Split,
};

/// Leases, ends and hands back chunks.
///
/// Every method that takes a lease may be repeated when its answer was lost.
///
/// # Errors
/// Methods that take a lease return [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the
/// lease is lost. Nothing was changed then.
#[async_trait]
pub trait ChunkStore: Send + Sync {
    /// Lists the chunks of a job in order of their numbers, after the given number.
    async fn chunks(
        &self,
        job: JobId,
        status: Option<ChunkStatus>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ChunkRow>>;
    /// Leases waiting chunks, each at a new epoch, by priority of the job. Jobs of equal priority
    /// share: the ones with the fewest chunks in progress come first, then the oldest.
    async fn lease_chunks(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>>;
    /// Ends a chunk, and its job when this was the last open chunk.
    async fn end_chunk(
        &self,
        lease: Lease,
        progress: &Progress,
        outcome: ChunkOutcome,
    ) -> Result<()>;
    /// Ends several chunks of one job `COMPLETED` in one transaction. None of them may have dead
    /// letters or settle any. When one of the leases is lost, no chunk is ended, and the caller
    /// must complete each of them separately.
    async fn complete_together(&self, chunks: &[(Lease, Progress)]) -> Result<()>;
    /// Completes jobs that have only their first chunk, together with that chunk, in one transaction. The chunks are of
    /// different jobs, and none of them may have dead letters or settle any. Returns for each whether it was completed: a
    /// store may leave out any of them, which the caller must then complete separately.
    async fn complete_jobs(&self, chunks: &[(Lease, Progress)]) -> Result<Vec<bool>> {
        Ok(vec![false; chunks.len()])
    }
    /// Ends a chunk `COMPLETED` at its cursor, and makes its remaining records new chunks of the same segment. Returns
    /// false, and changes nothing, if the job is not `PROCESSING`: new chunks of a cancelled job would not end.
    async fn split(&self, lease: Lease, progress: &Progress, split: &Split) -> Result<bool>;
    /// Hands a chunk back with its progress.
    async fn release(&self, lease: Lease, progress: &Progress, back: HandBack) -> Result<()>;

    /// Ends a chunk `COMPLETED`. In a redrive, `settled` names the keys whose dead letters become
    /// `reprocessed`, unless the item failed again.
    async fn complete(&self, lease: Lease, progress: &Progress, settled: &[String]) -> Result<()> {
        let outcome =
            ChunkOutcome::Completed { settled: settled.to_vec(), part: None, more_items: 0 };
        self.end_chunk(lease, progress, outcome).await
    }

    /// Ends a chunk `COMPLETED` and stores its part in the same transaction.
    async fn complete_part(&self, lease: Lease, progress: &Progress, part: &NewPart) -> Result<()> {
        let outcome = ChunkOutcome::Completed {
            settled: Vec::new(),
            part: Some(part.clone()),
            more_items: 0,
        };
        self.end_chunk(lease, progress, outcome).await
    }

    /// Ends a fenced chunk `FAILED`. With `fail_job` the job fails at once instead of after its
    /// other chunks. In a redrive, `settled` names the keys that are done according to the ledger:
    /// their dead letters become `reprocessed` in the same transaction.
    async fn fail(
        &self,
        lease: Lease,
        progress: &Progress,
        error: &str,
        fail_job: bool,
        settled: &[String],
    ) -> Result<()> {
        self.end_chunk(lease, progress, ChunkOutcome::failed(error, fail_job, settled)).await
    }

    /// Ends a fenced chunk of a cancelled job `CANCELLED`, and settles dead letters of a redrive as
    /// [`ChunkStore::fail`] does. The last chunk of a redrive also releases the remaining letters.
    async fn end_cancelled(
        &self,
        lease: Lease,
        progress: &Progress,
        settled: &[String],
    ) -> Result<()> {
        let outcome = ChunkOutcome::Cancelled { settled: settled.to_vec() };
        self.end_chunk(lease, progress, outcome).await
    }
}
