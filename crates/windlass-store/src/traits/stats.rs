//! Aggregates for metrics and charts.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use crate::{ChunkBucket, ChunkRow, DurationBucket, HourlyJobs, Result, Stats, ThroughputBucket};

/// Aggregates jobs and chunks.
#[async_trait]
pub trait StatsStore: Send + Sync {
    /// Counts the jobs and chunks that have not ended, by job type, and the lost leases, by job.
    /// The cost does not grow with the number of chunks.
    async fn stats(&self) -> Result<Stats>;
    /// Counts the jobs submitted within this time, by hour and status.
    async fn hourly_jobs(
        &self,
        age: Duration,
        submitted_by: Option<&str>,
        job_types: Option<&[String]>,
    ) -> Result<Vec<HourlyJobs>>;
    /// Counts the chunks of a job by status, in buckets of `width` consecutive chunks.
    async fn chunk_buckets(&self, job: JobId, width: i64) -> Result<Vec<ChunkBucket>>;
    /// Sums the items of a job's ended chunks, in buckets of this length of time.
    async fn throughput_buckets(
        &self,
        job: JobId,
        length: Duration,
    ) -> Result<Vec<ThroughputBucket>>;
    /// Counts the completed chunks of a job by duration, shortest first.
    async fn duration_buckets(&self, job: JobId) -> Result<Vec<DurationBucket>>;
    /// Lists the completed chunks of a job that took longest, slowest first.
    async fn slowest_chunks(&self, job: JobId, limit: u32) -> Result<Vec<ChunkRow>>;
}
