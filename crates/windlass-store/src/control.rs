//! Controls, and the worker processes.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The subject that stands for all job types.
pub const EVERYTHING: &str = "*";

/// The subject that stands for a connection. Processes report the health of its database there.
pub fn connection_subject(name: &str) -> String {
    format!("connection:{name}")
}

/// The controls of a subject: a job type, a job, a connection, or [`EVERYTHING`].
///
/// ```
/// use windlass_store::{Control, UNLIMITED};
///
/// fn is_limited(control: &Control) -> bool {
///     control.rate.is_some_and(|rate| rate != UNLIMITED)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Control {
    /// The job type, the job's id, `connection:NAME`, or `*`.
    pub subject: String,
    /// Whether it is neither planned nor worked.
    pub stopped: bool,
    /// Why it is suspended.
    pub suspended: Option<String>,
    /// The limit of its chunks in progress, over all processes; 9223372036854775807 is no limit.
    pub concurrency: Option<i64>,
    /// The limit of its items per second, over all processes; 9223372036854775807 is no limit.
    pub rate: Option<i64>,
}

/// No limit, even if the definition has one.
pub const UNLIMITED: i64 = i64::MAX;
/// The limit of the definition.
pub const AS_DEFINED: i64 = 0;

/// A worker process, as of its last heartbeat.
///
/// ```
/// use windlass_store::WorkerRow;
///
/// fn line(worker: &WorkerRow) -> String {
///     format!("{}: {} of {} slots", worker.name, worker.chunks, worker.slots)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Worker))]
#[serde(rename_all = "camelCase")]
pub struct WorkerRow {
    /// Its name.
    pub name: String,
    /// The number of its slots.
    pub slots: i64,
    /// The number of chunks that it has leased.
    pub chunks: i64,
    /// The job types of these chunks.
    pub job_types: Option<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// The time of its last heartbeat.
    pub seen_at: DateTime<Utc>,
    /// Whether its heartbeats stopped so long ago that its leases have expired.
    pub vanished: bool,
}

/// A worker process that missed its last heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentWorker {
    /// Its name.
    pub name: String,
    /// Its process, as its heartbeats named it.
    pub process: String,
}

/// The leases of a worker process that missed its last heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanedLeases {
    /// The name of the process.
    pub worker: String,
    /// The number of its leased chunks.
    pub chunks: i64,
    /// When the last of these leases expires.
    pub until: DateTime<Utc>,
}

/// A worker without a heartbeat for this many milliseconds missed two of them.
pub(crate) const WORKER_SILENT_AFTER_MS: i64 = 2_500;
/// A worker without a heartbeat for this many milliseconds has vanished. Workers send one every
/// second.
pub(crate) const WORKER_VANISHED_AFTER_MS: i64 = 10_000;
