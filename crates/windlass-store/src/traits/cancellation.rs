//! Ending the chunks and merges of cancelled jobs, and removing their output.

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{Capabilities, LeasedChunk, Result, SegmentLease};

/// Ends what a cancelled job still had leased, and finds the output that it leaves behind.
///
/// A fenced chunk is ended with [`ChunkStore::end_cancelled`](crate::ChunkStore::end_cancelled).
#[async_trait]
pub trait CancellationStore: Send + Sync {
    /// Leases chunks of cancelled jobs that were ever leased, at a new epoch and even while they
    /// are leased, so that the caller can fence and end them.
    async fn lease_cancelled(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>>;
    /// Leases merges of cancelled jobs that were ever leased, at a new epoch, so that the caller
    /// can fence their loads. A merge that is handed back is leased again after its wait.
    async fn lease_cancelled_merges(
        &self,
        by: &Capabilities,
        limit: u32,
    ) -> Result<Vec<SegmentLease>>;
    /// Ends a merge `CANCELLED` whose load is fenced. The note, if any, becomes the job's error.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the lease is lost.
    async fn end_cancelled_merge(&self, lease: SegmentLease, note: Option<&str>) -> Result<()>;
    /// Lists cancelled jobs on these connections whose chunks have all ended and whose output was
    /// not removed yet, each with its connection.
    async fn discardable(&self, connections: &[String], limit: u32)
    -> Result<Vec<(JobId, String)>>;
    /// Records that the output of a cancelled job was removed.
    async fn mark_discarded(&self, job: JobId) -> Result<()>;
}
