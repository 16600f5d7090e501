//! Deletes old jobs, chunks and dead letters in batches that hold locks briefly.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;
use windlass_drivers::{Param, Row};

use super::{PostgresStore, params, sql};
use crate::fields::Fields;
use crate::values::{DELETE_BATCH, millis};
use crate::{OldJobs, PartStore, Result, RetentionStore};

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn job_types(&self) -> Result<Vec<String>> {
        self.read(sql!(shared "job_types"), &[], |row: &Row| row.text("job_type")).await
    }

    async fn prunable(&self, jobs: &OldJobs) -> Result<Vec<JobId>> {
        self.list_old(sql!("prunable"), jobs).await
    }

    async fn remove_segments(&self, job: JobId) -> Result<()> {
        let statements = [sql!(shared "remove_segments"), sql!(shared "remove_read_snapshot")];
        self.run_locked(job, &statements).await
    }

    async fn remove_chunks(&self, job: JobId) -> Result<u64> {
        self.remove_segments(job).await?;
        let chunks = params![job, DELETE_BATCH];
        let removed = self.delete_batches(sql!(shared "remove_chunks"), chunks).await?;
        self.remove_parts(job).await?;
        self.run_locked(job, &[sql!("close_job")]).await?;
        Ok(removed)
    }

    async fn expired(&self, jobs: &OldJobs) -> Result<Vec<JobId>> {
        self.list_old(sql!("expired"), jobs).await
    }

    async fn close_job(&self, job: JobId, age: Duration) -> Result<bool> {
        // The lock is a separate statement, so that the next one sees all changes made before it.
        let of_job: &[Param<'_>] = params![job];
        let params: &[Param<'_>] = params![job, millis(age)];
        let statements = [(sql!("lock_job"), of_job), (sql!("close_expired_job"), params)];
        Ok(self.execute_all(&statements).await?[1] > 0)
    }

    async fn remove_job(&self, job: JobId) -> Result<u64> {
        self.remove_segments(job).await?;
        let chunks = params![job, DELETE_BATCH];
        let removed = self.delete_batches(sql!(shared "remove_chunks"), chunks).await?;
        self.single(sql!(shared "remove_control"), params![job.to_string()]).await?;
        let statements = [
            sql!(shared "remove_dead_letters_of_job"),
            sql!("release_dead_letters"),
            sql!(shared "remove_links"),
            sql!(shared "remove_parts"),
            sql!("remove_job"),
        ];
        self.run_locked(job, &statements).await?;
        Ok(removed)
    }

    async fn remove_dead_letters(&self, job_type: &str, age: Duration) -> Result<u64> {
        let params = params![job_type, millis(age), DELETE_BATCH];
        self.delete_batches(sql!("remove_dead_letters"), params).await
    }
}

impl PostgresStore {
    async fn list_old(&self, sql: &str, jobs: &OldJobs) -> Result<Vec<JobId>> {
        let params =
            params![&jobs.job_type, millis(jobs.age), jobs.limit, jobs.connections.as_slice()];
        self.read(sql, params, |row: &Row| row.id("id")).await
    }

    /// Runs statements on a job in one transaction that locks the job first.
    async fn run_locked(&self, job: JobId, statements: &[&str]) -> Result<()> {
        let of_job: &[Param<'_>] = params![job];
        let locked = [sql!("lock_job")].iter().chain(statements);
        self.execute_all(&locked.map(|sql| (*sql, of_job)).collect::<Vec<_>>()).await.map(drop)
    }

    /// Repeats a statement that deletes one batch, until a batch is not full.
    async fn delete_batches(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let mut removed = 0;
        loop {
            let batch = self.execute(sql, params).await?;
            removed += batch;
            if batch < u64::from(DELETE_BATCH) {
                return Ok(removed);
            }
        }
    }
}
