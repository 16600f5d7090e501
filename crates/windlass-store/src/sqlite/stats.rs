//! Aggregates jobs and chunks.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus};

use super::transaction::Transaction;
use super::{SqliteStore, sql, without_null_check};
use crate::values::millis;
use crate::{
    ChunkBucket, ChunkRow, DurationBucket, HourlyJobs, Result, Stats, StatsStore, ThroughputBucket,
    rows,
};

#[async_trait]
impl StatsStore for SqliteStore {
    async fn stats(&self) -> Result<Stats> {
        let read = |tx: &Transaction<'_>| {
            let depths = tx.query(sql!("depths"), [], |row| rows::depth(row))?;
            Ok(Stats { depths, losses: tx.query(sql!("losses"), [], |row| rows::losses(row))? })
        };
        self.read(read).await
    }

    async fn hourly_jobs(
        &self,
        age: Duration,
        submitted_by: Option<&str>,
        job_types: Option<&[String]>,
    ) -> Result<Vec<HourlyJobs>> {
        let by = submitted_by.map(str::to_owned);
        let types = job_types.map(serde_json::to_string).transpose()?;
        let statuses = serde_json::to_string(JobStatus::ALL)?;
        let sql = without_null_check(sql!("hourly_jobs"), &by, "?2");
        let params = (millis(age), by, statuses, types);
        self.query(sql, params, |row| rows::hourly_jobs(row)).await
    }

    async fn chunk_buckets(&self, job: JobId, width: i64) -> Result<Vec<ChunkBucket>> {
        let params = (job.to_string(), width);
        self.query(sql!("chunk_buckets"), params, |row| rows::chunk_bucket(row)).await
    }

    async fn throughput_buckets(
        &self,
        job: JobId,
        length: Duration,
    ) -> Result<Vec<ThroughputBucket>> {
        let params = (job.to_string(), millis(length));
        self.query(sql!("throughput_buckets"), params, |row| rows::throughput_bucket(row)).await
    }

    async fn duration_buckets(&self, job: JobId) -> Result<Vec<DurationBucket>> {
        let params = [job.to_string()];
        self.query(sql!("duration_buckets"), params, |row| rows::duration_bucket(row)).await
    }

    async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>> {
        let params = (job.to_string(), limit);
        self.query(sql!(shared "slowest_chunks"), params, |row| rows::chunk(row)).await
    }
}
