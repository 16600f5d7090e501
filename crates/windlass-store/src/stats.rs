//! What there is to do, in numbers.

use windlass_core::{JobId, JobStatus};

/// What there is to do, and what was lost on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Jobs that have not ended, by job type and status.
    pub depths: Vec<Depth>,
    /// Leases lost, of jobs whose chunks are still there.
    pub losses: Vec<Losses>,
}

/// Jobs of a type that are in a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The job type.
    pub job_type: String,
    /// The status.
    pub status: JobStatus,
    /// How many jobs.
    pub jobs: i64,
    /// Their chunks that wait.
    pub pending: i64,
    /// Their chunks at work.
    pub processing: i64,
}

/// Leases that a job lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// How many of its leases ran out.
    pub losses: i64,
}
