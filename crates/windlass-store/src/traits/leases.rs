//! Leases of chunks and segments.

use async_trait::async_trait;

use crate::{Capabilities, Lease, LeaseRenewal, LeaseStatus, OrphanedLeases, Result, SegmentLease};

/// Confirms, renews and expires leases.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Reads the status of each lease, in the order given. A worker confirms its leases after it
    /// has fenced the ledger.
    async fn confirm(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>>;
    /// Renews all leases of a process, never past the timeout of a chunk. Returns the status of
    /// each chunk's lease, in the order given.
    async fn heartbeat(
        &self,
        chunks: &[LeaseRenewal],
        segments: &[SegmentLease],
    ) -> Result<Vec<LeaseStatus>>;
    /// Lists the leases of processes that missed their last heartbeats, except this one, by process.
    async fn orphaned_leases(&self, by: &Capabilities) -> Result<Vec<OrphanedLeases>>;
    /// Expires all leases of a process that is known to have ended. Returns their number. If it runs
    /// after all, the next epoch fences its commits, as after any other expired lease.
    async fn expire_leases(&self, worker: &str) -> Result<u64>;
    /// Returns chunks and segments whose lease has expired to `PENDING`. Returns their number.
    async fn rescue(&self) -> Result<u64>;
}
