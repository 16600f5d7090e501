//! What is drawn rather than listed: many rows as a few numbers.

use chrono::{DateTime, Utc};
use windlass_core::{ChunkStatus, JobStatus};

/// Jobs that were submitted within one hour and are in one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourlyJobs {
    /// When the hour begins.
    pub at: DateTime<Utc>,
    /// The status.
    pub status: JobStatus,
    /// How many jobs.
    pub jobs: i64,
}

/// Chunks of a job, one after another, that are in one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkBucket {
    /// Which stretch of chunks, from zero.
    pub cell: i64,
    /// The status.
    pub status: ChunkStatus,
    /// How many chunks.
    pub chunks: i64,
    /// How many of their items died.
    pub dead: i64,
}

/// What of a job was done within one stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThroughputBucket {
    /// When the stretch begins.
    pub at: DateTime<Utc>,
    /// Items of chunks that ended in it.
    pub items: i64,
}

/// Completed chunks of a job that took about as long, from their first claim on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationBucket {
    /// How long, in milliseconds cut to two digits.
    pub millis: i64,
    /// How many chunks.
    pub chunks: i64,
}

/// Dead letters of a job type whose errors differ in values alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterGroup {
    /// The job type.
    pub job_type: String,
    /// The error that all of them have, or else its fingerprint.
    pub error: String,
    /// The fingerprint ([`windlass_core::error_fingerprint()`]), by which exactly these letters are found.
    pub fingerprint: String,
    /// How many.
    pub letters: i64,
    /// When the last of them died.
    pub last_at: DateTime<Utc>,
}
