//! Aggregates for metrics and charts.

use chrono::{DateTime, Utc};
use windlass_core::{ChunkStatus, JobId, JobStatus};

/// The amount of open work, and the leases that were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Jobs that have not ended, by job type and status.
    pub depths: Vec<Depth>,
    /// Lost leases of jobs that still have chunks.
    pub losses: Vec<Losses>,
}

/// The jobs of a type with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The job type.
    pub job_type: String,
    /// The status.
    pub status: JobStatus,
    /// The number of jobs.
    pub jobs: i64,
    /// The number of their pending chunks.
    pub pending: i64,
    /// The number of their chunks in progress.
    pub processing: i64,
}

/// The lost leases of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// The number of leases that expired.
    pub losses: i64,
}

/// The jobs that were submitted within one hour and have one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourlyJobs {
    /// The beginning of the hour.
    pub at: DateTime<Utc>,
    /// The status.
    pub status: JobStatus,
    /// The number of jobs.
    pub jobs: i64,
}

/// Consecutive chunks of a job that have one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkBucket {
    /// The number of the bucket, from zero.
    pub bucket: i64,
    /// The status.
    pub status: ChunkStatus,
    /// The number of chunks.
    pub chunks: i64,
    /// The number of their dead items.
    pub dead: i64,
}

/// The throughput of a job within one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThroughputBucket {
    /// The beginning of the interval.
    pub at: DateTime<Utc>,
    /// The number of items of chunks that ended in it.
    pub items: i64,
}

/// Completed chunks of a job that took about the same time, measured from their first lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationBucket {
    /// The duration in milliseconds, truncated to two significant digits.
    pub millis: i64,
    /// The number of chunks.
    pub chunks: i64,
}
