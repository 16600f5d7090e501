//! What holds for a job type, for one job or for everything, and the processes that work.

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The subject that means everything.
pub const EVERYTHING: &str = "*";

/// The subject that means a connection: how its database is, as the processes that use it say.
pub fn of_connection(name: &str) -> String {
    format!("connection:{name}")
}

/// What is said of a subject: a job type, a job by its id, a connection, or [`EVERYTHING`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Control {
    /// The job type, the job's id, `connection:NAME`, or `*`.
    pub subject: String,
    /// Whether nothing of it is loaded or claimed.
    pub stopped: bool,
    /// Why none of its chunks is claimed for a while.
    pub suspended: Option<String>,
    /// How many of its chunks may be at work at once, over all machines;
    /// 9223372036854775807 is no limit.
    pub concurrency: Option<i64>,
    /// How many of its items may be worked a second, over all machines;
    /// 9223372036854775807 is no limit.
    pub rate: Option<i64>,
}

/// No limit at all, whatever the definition says.
pub const UNLIMITED: i64 = i64::MAX;
/// The limit that the definition gives.
pub const AS_DEFINED: i64 = 0;

/// A process that works, as it last said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Worker))]
#[serde(rename_all = "camelCase")]
pub struct WorkerRow {
    /// Its name.
    pub name: String,
    /// How many chunks it works at once.
    pub slots: i64,
    /// How many it holds.
    pub chunks: i64,
    /// The job types they are of.
    pub job_types: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it was last heard of.
    pub seen_at: DateTime<Utc>,
    /// Whether it has been silent for so long that its chunks have gone to others.
    pub vanished: bool,
}

/// A process that has been silent for so many milliseconds has vanished: it says something every
/// second.
pub(crate) const VANISHED: i64 = 10_000;
