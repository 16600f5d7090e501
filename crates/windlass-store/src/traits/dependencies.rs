//! Tables `windlass_links`, `windlass_join_points` and `windlass_triggers`: jobs that run after other
//! jobs.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{JoinPointRow, LinkedJob, Result, Trigger};

/// Reads dependencies, and submits the jobs that they trigger.
#[async_trait]
pub trait DependencyStore: Send + Sync {
    /// Lists a job with its ancestors and descendants, oldest first.
    async fn dependency_graph(&self, job: JobId, limit: u32) -> Result<Vec<LinkedJob>>;
    /// Lists the dependencies of which some parents have ended and others have not, newest first.
    async fn join_points(&self, limit: u32) -> Result<Vec<JoinPointRow>>;
    /// Lists the jobs that are to be submitted because their parents have ended.
    async fn triggers(&self, limit: u32) -> Result<Vec<Trigger>>;
    /// Leases triggers that are due, for the length of the lease.
    async fn lease_triggers(&self, limit: u32, lease: Duration) -> Result<Vec<Trigger>>;
    /// Removes a trigger whose job was submitted.
    async fn complete_trigger(&self, id: JobId) -> Result<()>;
    /// Records why a triggered job was refused. It is tried again after `wait`.
    async fn fail_trigger(&self, id: JobId, error: &str, wait: Duration) -> Result<()>;
}
