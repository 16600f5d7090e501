//! Table `windlass_parts`: the output of chunks and merges.

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{NewPart, PartRow, Result, SegmentLease};

/// Stores parts. The part of a chunk is written by
/// [`ChunkStore::complete_part`](crate::ChunkStore::complete_part).
#[async_trait]
pub trait PartStore: Send + Sync {
    /// Lists the parts of a job in order, after this chunk.
    async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>>;
    /// Reads the merged result of a job without its content.
    async fn merged_part(&self, job: JobId) -> Result<Option<PartRow>>;
    /// Stores the merged result of a job.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the lease of the merge segment
    /// is lost.
    async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<()>;
    /// Records the report of a job, before its file becomes visible.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the lease of the merge segment
    /// is lost.
    async fn put_report(&self, lease: SegmentLease, report: &NewPart) -> Result<()>;
    /// Deletes the parts of a job.
    async fn remove_parts(&self, job: JobId) -> Result<()>;
}
