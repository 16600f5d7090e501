//! Table `windlass_controls`: settings that change at run time.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{Control, Lease, Result};

/// Stops, suspends and limits job types, jobs and connections across all processes.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// Suspends a job type: for `wait`, no process leases its chunks, and its jobs show the reason.
    /// For a connection ([`connection_subject`](crate::connection_subject)) only the reason is
    /// shown. Returns false when the subject is already suspended for longer.
    async fn suspend(&self, subject: &str, reason: &str, wait: Duration) -> Result<bool>;
    /// Stops or starts a subject. While it is stopped, its jobs are neither planned nor worked.
    async fn stop(&self, subject: &str, stopped: bool) -> Result<()>;
    /// Limits the chunks in progress and the items per second of a job type or job, over all
    /// processes. `None` keeps a limit as it is.
    async fn set_throughput(
        &self,
        subject: &str,
        concurrency: Option<i64>,
        rate: Option<i64>,
    ) -> Result<()>;
    /// Lists all controls.
    async fn controls(&self) -> Result<Vec<Control>>;
    /// Lists leases beyond a concurrency limit that was lowered. Their workers must hand the chunks
    /// back.
    async fn over_limit(&self) -> Result<Vec<Lease>>;
    /// Reserves time for `items` at the rate limit of their job, unless the reserved time would
    /// begin later than `max_wait` from now. Returns the time until it begins.
    async fn reserve(&self, job: JobId, items: i64, max_wait: Duration) -> Result<Duration>;
}
