//! Read snapshots: one instant of the source, under which all chunks of a job are read.

use std::time::Duration;

use chrono::{DateTime, Utc};
use windlass_core::JobId;

/// A read snapshot that a planner holds, to be recorded with the chunks that it planned under it.
#[derive(Clone, Debug)]
pub struct NewReadSnapshot {
    /// Counts the snapshots of the job.
    pub number: i64,
    /// The server that has it.
    pub server: String,
    /// Its name on that server.
    pub name: String,
    /// What identifies it: names may repeat after a restart of the server.
    pub fingerprint: String,
    /// The worker that holds it.
    pub worker: String,
    /// How long it counts as held without being renewed.
    pub lease: Duration,
}

/// The read snapshot of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSnapshotRow {
    /// Counts the snapshots of the job.
    pub number: i64,
    /// The server that has it.
    pub server: String,
    /// Its name on that server.
    pub name: String,
    /// What identifies it.
    pub fingerprint: String,
    /// Until when it counts as held. `None` when it is not held any more.
    pub lease_until: Option<DateTime<Utc>>,
}

/// A read snapshot whose holder is gone although the job still has chunks to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostReadSnapshot {
    /// The job.
    pub job: JobId,
    /// The number of the snapshot.
    pub number: i64,
    /// The server that had it.
    pub server: String,
    /// The worker that held it.
    pub worker: String,
    /// How many snapshots the job has lost before, since it was submitted or retried.
    pub losses: i64,
    /// The chunks of the job.
    pub chunks: i64,
    /// Those that are completed.
    pub completed: i64,
    /// The time since the snapshot was taken.
    pub age: Duration,
}
