//! Table `windlass_jobs`: submitting and reading jobs.

use async_trait::async_trait;
use windlass_core::{Job, JobId, JobStatus};

use crate::{JobFilter, JobSnapshot, NewJob, Owner, Result, Submitted};

/// Submits and reads jobs.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Queues a job: inserts its row, and its complete plan or the `PLAN` segment that splits the source into segments.
    async fn submit(&self, job: NewJob) -> Result<Submitted>;
    /// Reads a job with its counters.
    async fn job(&self, id: JobId) -> Result<Option<Job>>;
    /// Reads the status of a job. It reads one row, however many chunks the job has.
    async fn status(&self, id: JobId) -> Result<Option<JobStatus>>;
    /// Lists jobs, newest first. Large lists inside their requests are left out.
    async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>>;
    /// Reads the type and submitter of each of these jobs. Jobs that do not exist are left out.
    async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>>;
    /// Lists the jobs of a submitter that have not ended, oldest first.
    async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>>;
    /// Whether a job can be planned or processed, or a dependent job is to be submitted.
    async fn has_open_work(&self) -> Result<bool>;
    /// Lists the ids that begin with this text or whose last eight characters are this text, newest first.
    async fn matching_jobs(&self, text: &str, limit: u32) -> Result<Vec<JobId>>;
    /// Reads what a job was submitted with.
    async fn snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>>;
    /// Lists a job and the jobs that redrive its dead letters, oldest first.
    async fn redrive_chain(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>>;
}
