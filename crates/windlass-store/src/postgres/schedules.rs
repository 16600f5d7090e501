//! Stores the schedules of job types.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use windlass_core::JobId;
use windlass_drivers::Row;

use super::{PostgresStore, params, sql};
use crate::fields::Fields;
use crate::values::{clean, instant};
use crate::{Result, ScheduleRow, ScheduleStore, StoreError, rows};

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn now(&self) -> Result<DateTime<Utc>> {
        let now = self.read_first(sql!("now"), &[], |row: &Row| row.time("now")).await?;
        now.ok_or_else(|| StoreError::Unreadable("the time".to_owned()))
    }

    async fn put_schedule(
        &self,
        job_type: &str,
        spec: &str,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<()> {
        let params = params![job_type, spec, next_at.map(instant)];
        self.single(sql!("put_schedule"), params).await.map(drop)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
        self.read(sql!("list_schedules"), &[], rows::schedule).await
    }

    async fn advance_schedule(
        &self,
        job_type: &str,
        from: DateTime<Utc>,
        to: Option<DateTime<Utc>>,
        fired: Option<(DateTime<Utc>, JobId)>,
    ) -> Result<bool> {
        let (at, job) = fired.unzip();
        let (from, to, at) = (instant(from), to.map(instant), at.map(instant));
        let params = params![job_type, from, to, job, at];
        Ok(self.execute(sql!("advance_schedule"), params).await? > 0)
    }

    async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()> {
        self.single(sql!(shared "fail_schedule"), params![job_type, clean(error)]).await.map(drop)
    }

    async fn pause_schedule(
        &self,
        job_type: &str,
        paused: bool,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let params = params![job_type, paused, next_at.map(instant)];
        Ok(self.execute_and_signal(sql!("pause_schedule"), params).await? > 0)
    }
}
