//! Table `windlass_read_snapshots`: which process holds the instant at which a job is read.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{LostReadSnapshot, ReadSnapshotRow, Result};

/// Keeps the read snapshots of jobs. [`SegmentStore::commit_page`](crate::SegmentStore::commit_page)
/// records a new one, with the chunks that are read under it.
#[async_trait]
pub trait ReadSnapshotStore: Send + Sync {
    /// The last read snapshot of a job.
    async fn read_snapshot(&self, job: JobId) -> Result<Option<ReadSnapshotRow>>;
    /// Renews the lease of a read snapshot. Returns false if the job does not need it any more, or if it was
    /// reported as lost.
    async fn renew_read_snapshot(&self, job: JobId, number: i64, lease: Duration) -> Result<bool>;
    /// Records that a read snapshot is not held any more, because the job does not need it. Changes nothing if
    /// the job needs it.
    async fn release_read_snapshot(&self, job: JobId, number: i64) -> Result<()>;
    /// Expires the lease of a read snapshot that was lost. It cannot be renewed afterwards.
    async fn expire_read_snapshot(&self, job: JobId, number: i64) -> Result<()>;
    /// Lists the read snapshots whose lease has expired although their job has chunks to read.
    async fn lost_read_snapshots(&self) -> Result<Vec<LostReadSnapshot>>;
    /// Plans a job again whose read snapshot is lost. Everything that was read under it is discarded in the
    /// same transaction: chunks, parts and dead letters. Returns false and changes nothing if the snapshot
    /// is held, replaced or not needed any more.
    async fn read_again(&self, job: JobId, number: i64) -> Result<bool>;
    /// Fails a job whose read snapshot is lost. Returns false and changes nothing if the snapshot is held,
    /// replaced or not needed any more.
    async fn fail_read(&self, job: JobId, number: i64, error: &str) -> Result<bool>;
}
