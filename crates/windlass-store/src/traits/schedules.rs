//! Table `windlass_schedules`.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use windlass_core::JobId;

use crate::{Result, ScheduleRow};

/// Stores the schedules of job types and their next firing time.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Reads the database's clock.
    async fn now(&self) -> Result<DateTime<Utc>>;
    /// Stores the schedule of a job type. An unchanged schedule keeps its next firing time.
    async fn put_schedule(
        &self,
        job_type: &str,
        spec: &str,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<()>;
    /// Lists all schedules.
    async fn schedules(&self) -> Result<Vec<ScheduleRow>>;
    /// Moves the next firing time of a schedule `from` one time `to` the next, and records which
    /// job was submitted for which time. Returns false when another process has moved it already.
    async fn advance_schedule(
        &self,
        job_type: &str,
        from: DateTime<Utc>,
        to: Option<DateTime<Utc>>,
        fired: Option<(DateTime<Utc>, JobId)>,
    ) -> Result<bool>;
    /// Records why a schedule could not fire.
    async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()>;
    /// Pauses a schedule, or resumes it with this next firing time. Returns false when the job type
    /// has no schedule.
    async fn pause_schedule(
        &self,
        job_type: &str,
        paused: bool,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<bool>;
}
