//! Schedules as the store keeps them.

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
    /// The definition that the next time was found by.
    #[serde(skip)]
    pub spec: String,
    /// The first time that has not been seen to.
    pub next_at: Option<DateTime<Utc>>,
    /// Whether it rests.
    pub paused: bool,
    /// When it was last fired.
    pub last_at: Option<DateTime<Utc>>,
    /// The job of that time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Uuid>))]
    pub last_job: Option<JobId>,
    /// Why it could not be fired.
    pub error: Option<String>,
    /// What time it was when this was read.
    #[serde(skip)]
    pub now: DateTime<Utc>,
}
