//! Table `windlass_segments`: planning, which cuts the source into chunks.

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{Capabilities, HandBack, LeasedSegment, Page, Result, SegmentLease, SegmentRow};

/// Plans segments: leases them and commits the chunks that were cut from them, page by page.
#[async_trait]
pub trait SegmentStore: Send + Sync {
    /// Lists the segments of a job in order.
    async fn segments(&self, job: JobId) -> Result<Vec<SegmentRow>>;
    /// Leases waiting segments, by priority of the job, then by age.
    async fn lease_segments(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedSegment>>;
    /// Commits one page of planning in one transaction: its chunks, its new segments and the new
    /// pagination state. The segment must still have the epoch and state that the page began with.
    /// May be repeated.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`](crate::StoreError::LeaseLost) when the lease is lost; nothing was
    /// changed then. The same holds for the other methods that take a lease.
    async fn commit_page(&self, page: Page) -> Result<()>;
    /// Hands a segment back.
    async fn release_segment(&self, lease: SegmentLease, back: HandBack) -> Result<()>;
    /// Ends a segment `FAILED`, which fails the job.
    async fn fail_segment(&self, lease: SegmentLease, error: &str) -> Result<()>;
}
