//! Commands that change the status of a job.

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus};

use crate::{JobCommand, Result};

/// Pauses, resumes, cancels and retries jobs.
#[async_trait]
pub trait LifecycleStore: Send + Sync {
    /// Carries out a command and returns the status of the job after it. A command that the job's
    /// status does not allow is refused with a `Problem`.
    async fn command(&self, job: JobId, command: JobCommand) -> Result<JobStatus>;

    /// Pauses a job: none of its chunks is leased any more, and workers hand back the chunks that
    /// they have leased.
    async fn pause(&self, job: JobId, reason: Option<&str>) -> Result<JobStatus> {
        self.command(job, JobCommand::pause(reason)).await
    }

    /// Resumes a paused job and grants it another failure budget.
    async fn resume(&self, job: JobId) -> Result<JobStatus> {
        self.command(job, JobCommand::Resume).await
    }

    /// Cancels a job, or a redrive that failed. Segments, and chunks that were never leased, end
    /// at once. Chunks and merges that were leased may still commit, so they must be fenced first;
    /// see [`CancellationStore`](crate::CancellationStore). Until they have ended, the job is
    /// reported as `PROCESSING` with an error that says it is being cancelled, and its dependents
    /// wait. The command may be repeated meanwhile.
    async fn cancel(&self, job: JobId) -> Result<JobStatus> {
        self.command(job, JobCommand::Cancel).await
    }

    /// Queues the failed segments and chunks of a failed job again, with their attempts reset.
    async fn retry(&self, job: JobId) -> Result<JobStatus> {
        self.command(job, JobCommand::Retry).await
    }
}
