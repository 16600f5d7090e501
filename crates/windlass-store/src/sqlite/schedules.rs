//! Stores the schedules of job types.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use windlass_core::JobId;

use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::values::{clean, instant};
use crate::{Result, ScheduleRow, ScheduleStore, rows};

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn now(&self) -> Result<DateTime<Utc>> {
        self.read(|tx| tx.query_one(sql!("now"), [], |row| row.time("now"))).await
    }

    async fn put_schedule(
        &self,
        job_type: &str,
        spec: &str,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<()> {
        let params = (job_type.to_owned(), spec.to_owned(), next_at.map(instant));
        self.execute(sql!("put_schedule"), params).await.map(drop)
    }

    async fn schedules(&self) -> Result<Vec<ScheduleRow>> {
        self.query(sql!("list_schedules"), [], |row| rows::schedule(row)).await
    }

    async fn advance_schedule(
        &self,
        job_type: &str,
        from: DateTime<Utc>,
        to: Option<DateTime<Utc>>,
        fired: Option<(DateTime<Utc>, JobId)>,
    ) -> Result<bool> {
        let (at, job) = fired.unzip();
        let (at, job) = (at.map(instant), job.map(|job| job.to_string()));
        let params = (job_type.to_owned(), instant(from), to.map(instant), job, at);
        Ok(self.execute(sql!("advance_schedule"), params).await? > 0)
    }

    async fn fail_schedule(&self, job_type: &str, error: &str) -> Result<()> {
        let params = (job_type.to_owned(), clean(error));
        self.execute(sql!(shared "fail_schedule"), params).await.map(drop)
    }

    async fn pause_schedule(
        &self,
        job_type: &str,
        paused: bool,
        next_at: Option<DateTime<Utc>>,
    ) -> Result<bool> {
        let params = (job_type.to_owned(), paused, next_at.map(instant));
        Ok(self.execute_and_signal(sql!("pause_schedule"), params).await? > 0)
    }
}
