//! Schedules of job types.

use chrono::{DateTime, Utc};
use serde::Serialize;
use windlass_core::JobId;

/// The schedule of a job type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScheduleRow {
    /// The job type.
    pub job_type: String,
    /// The definition from which the next firing time was computed.
    #[serde(skip)]
    pub spec: String,
    /// The earliest firing time that was not handled yet.
    pub next_at: Option<DateTime<Utc>>,
    /// Whether the schedule is paused.
    pub paused: bool,
    /// The last time that it fired.
    pub last_at: Option<DateTime<Utc>>,
    /// The job that was submitted then.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub last_job: Option<JobId>,
    /// Why it could not fire.
    pub error: Option<String>,
    /// The time at which this row was read.
    #[serde(skip)]
    pub now: DateTime<Utc>,
}
