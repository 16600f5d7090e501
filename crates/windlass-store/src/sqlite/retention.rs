//! Deletes old jobs, chunks and dead letters in batches that block other writers briefly.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;
use windlass_drivers::rusqlite::Params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::values::{DELETE_BATCH, millis};
use crate::{OldJobs, PartStore, Result, RetentionStore};

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn job_types(&self) -> Result<Vec<String>> {
        self.query(sql!(shared "job_types"), [], |row| row.text("job_type")).await
    }

    async fn prunable(&self, jobs: &OldJobs) -> Result<Vec<JobId>> {
        self.list_old(sql!("prunable"), jobs).await
    }

    async fn remove_segments(&self, job: JobId) -> Result<()> {
        let statements = [sql!(shared "remove_segments"), sql!(shared "remove_read_snapshot")];
        self.run_all(job, &statements).await
    }

    async fn remove_chunks(&self, job: JobId) -> Result<u64> {
        self.remove_segments(job).await?;
        let params = (job.to_string(), DELETE_BATCH);
        let removed = self.delete_batches(sql!(shared "remove_chunks"), params).await?;
        self.remove_parts(job).await?;
        self.run_all(job, &[sql!("close_job")]).await?;
        Ok(removed)
    }

    async fn expired(&self, jobs: &OldJobs) -> Result<Vec<JobId>> {
        self.list_old(sql!("expired"), jobs).await
    }

    async fn close_job(&self, job: JobId, age: Duration) -> Result<bool> {
        let params = (job.to_string(), millis(age));
        Ok(self.execute(sql!("close_expired_job"), params).await? > 0)
    }

    async fn remove_job(&self, job: JobId) -> Result<u64> {
        self.remove_segments(job).await?;
        let params = (job.to_string(), DELETE_BATCH);
        let removed = self.delete_batches(sql!(shared "remove_chunks"), params).await?;
        let statements = [
            sql!(shared "remove_control"),
            sql!(shared "remove_dead_letters_of_job"),
            sql!("release_dead_letters"),
            sql!(shared "remove_links"),
            sql!(shared "remove_parts"),
            sql!("remove_job"),
        ];
        self.run_all(job, &statements).await?;
        Ok(removed)
    }

    async fn remove_dead_letters(&self, job_type: &str, age: Duration) -> Result<u64> {
        let params = (job_type.to_owned(), millis(age), DELETE_BATCH);
        self.delete_batches(sql!("remove_dead_letters"), params).await
    }
}

impl SqliteStore {
    async fn list_old(&self, sql: &'static str, jobs: &OldJobs) -> Result<Vec<JobId>> {
        let connections = serde_json::to_string(&jobs.connections)?;
        let params = (jobs.job_type.clone(), millis(jobs.age), jobs.limit, connections);
        self.query(sql, params, |row| row.id("id")).await
    }

    /// Runs statements on a job in one transaction.
    async fn run_all(&self, job: JobId, statements: &[&'static str]) -> Result<()> {
        let (job, statements) = (job.to_string(), statements.to_vec());
        let run = move |tx: &Transaction<'_>| {
            statements.iter().try_for_each(|sql| tx.execute(sql, [&job]).map(drop))
        };
        self.write(run).await
    }

    /// Repeats a statement that deletes one batch, until a batch is not full.
    async fn delete_batches(
        &self,
        sql: &'static str,
        params: impl Params + Clone + Send + 'static,
    ) -> Result<u64> {
        let mut removed = 0;
        loop {
            let batch = self.execute(sql, params.clone()).await?;
            removed += batch;
            if batch < u64::from(DELETE_BATCH) {
                return Ok(removed);
            }
        }
    }
}
