//! Aggregates jobs and chunks.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::{JobId, JobStatus};
use windlass_drivers::Param;

use super::{PostgresStore, params, sql, texts};
use crate::values::millis;
use crate::{
    ChunkBucket, ChunkRow, DurationBucket, HourlyJobs, Result, Stats, StatsStore, ThroughputBucket,
    rows,
};

#[async_trait]
impl StatsStore for PostgresStore {
    async fn stats(&self) -> Result<Stats> {
        let depths = self.read(sql!("depths"), &[], rows::depth).await?;
        Ok(Stats { depths, losses: self.read(sql!("losses"), &[], rows::losses).await? })
    }

    async fn hourly_jobs(
        &self,
        age: Duration,
        submitted_by: Option<&str>,
        job_types: Option<&[String]>,
    ) -> Result<Vec<HourlyJobs>> {
        let statuses = Param::texts(JobStatus::ALL.iter().map(|status| status.as_str()));
        let params = [millis(age).into(), submitted_by.into(), statuses, texts(job_types)];
        self.read(sql!("hourly_jobs"), &params, rows::hourly_jobs).await
    }

    async fn chunk_buckets(&self, job: JobId, width: i64) -> Result<Vec<ChunkBucket>> {
        self.read(sql!("chunk_buckets"), params![job, width], rows::chunk_bucket).await
    }

    async fn throughput_buckets(
        &self,
        job: JobId,
        length: Duration,
    ) -> Result<Vec<ThroughputBucket>> {
        let params = params![job, millis(length)];
        self.read(sql!("throughput_buckets"), params, rows::throughput_bucket).await
    }

    async fn duration_buckets(&self, job: JobId) -> Result<Vec<DurationBucket>> {
        self.read(sql!("duration_buckets"), params![job], rows::duration_bucket).await
    }

    async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>> {
        self.read(sql!(shared "slowest_chunks"), params![job, i64::from(limit)], rows::chunk).await
    }
}
