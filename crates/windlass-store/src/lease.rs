//! Leases of chunks and segments.

use std::time::Duration;

use windlass_core::{ChunkId, JobId};

use crate::Progress;

/// What a process can work on. It leases nothing else.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    /// The name of the process, as listings show it.
    pub worker: String,
    /// The connections that it can reach.
    pub connections: Vec<String>,
    /// The handlers that are registered in it.
    pub handlers: Vec<String>,
    /// Lease for this job only, as `windlass run` does.
    pub only_job: Option<JobId>,
    /// Lease only chunks of jobs with a higher priority than this.
    pub above_priority: Option<u8>,
    /// Lease no chunks of these job types and jobs.
    pub except: Vec<String>,
    /// Its host, process id and start time, so that a peer on the same host can tell whether it
    /// runs.
    pub process: Option<String>,
}

/// A lease of a chunk. The next lease has a higher epoch. The nonce distinguishes two leases at the
/// same epoch, which occur when the store was restored from a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The chunk.
    pub chunk: ChunkId,
    /// The number of the lease.
    pub epoch: i64,
    /// The random number of the lease.
    pub nonce: i64,
}

/// A lease of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentLease {
    /// The job.
    pub job: JobId,
    /// The number of the segment; zero is the plan.
    pub segment: i32,
    /// The number of the lease.
    pub epoch: i64,
    /// The random number of the lease.
    pub nonce: i64,
}

/// How a chunk or segment is handed back.
#[derive(Clone, Debug, Default)]
pub struct HandBack {
    /// Why it could not be worked.
    pub error: Option<String>,
    /// Whether this counts as a failed attempt.
    pub attempt: bool,
    /// The time until it can be leased again.
    pub wait: Duration,
}

impl HandBack {
    /// Creates it from its fields.
    pub fn new(error: Option<&str>, attempt: bool, wait: Duration) -> HandBack {
        HandBack { error: error.map(str::to_owned), attempt, wait }
    }
}

/// A heartbeat of one chunk.
#[derive(Clone, Debug)]
pub struct LeaseRenewal {
    /// The lease to renew.
    pub lease: Lease,
    /// The progress of the chunk; `None` until its ledger was read.
    pub progress: Option<Progress>,
    /// Whether the chunk is in a slot. While it waits for one, its lease is short.
    pub in_slot: bool,
}

/// The status of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// The lease is valid. Continue.
    Held,
    /// The lease is valid, but the job is paused, cancelled or failed. Hand the chunk back.
    HandBack,
    /// The chunk was leased again or has ended. Stop at once.
    Lost,
}
