//! Deleting jobs that ended long ago.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{OldJobs, Result};

/// Deletes old jobs, chunks and dead letters, in batches that hold locks briefly.
#[async_trait]
pub trait RetentionStore: Send + Sync {
    /// Lists the job types of jobs that have ended.
    async fn job_types(&self) -> Result<Vec<String>>;
    /// Lists jobs that ended for good and still have chunks.
    async fn prunable(&self, jobs: &OldJobs) -> Result<Vec<JobId>>;
    /// Deletes the segments and the read snapshot of a job that ended for good or is closed. A job without
    /// segments is known to be pruned, so this comes before its ledger is deleted.
    async fn remove_segments(&self, job: JobId) -> Result<()>;
    /// Deletes the chunks, segments and parts of a job that ended for good and whose ledger was
    /// deleted, and closes the job. Returns the number of chunks.
    async fn remove_chunks(&self, job: JobId) -> Result<u64>;
    /// Lists jobs that ended and have no dead letter that is `new`.
    async fn expired(&self, jobs: &OldJobs) -> Result<Vec<JobId>>;
    /// Closes a job if it is still expired. A closed job cannot be retried, so its ledger may be
    /// deleted. Returns whether the job was closed.
    async fn close_job(&self, job: JobId, age: Duration) -> Result<bool>;
    /// Deletes a closed job and all its rows. A job that has got a `new` dead letter meanwhile is
    /// kept with it. Returns the number of chunks.
    async fn remove_job(&self, job: JobId) -> Result<u64>;
    /// Deletes dead letters of a job type that have not changed for `age`, unless their job has not
    /// ended or a redrive owns them. Returns their number.
    async fn remove_dead_letters(&self, job_type: &str, age: Duration) -> Result<u64>;
}
