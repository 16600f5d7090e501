//! Deadlines of scheduled jobs: passed, or at risk as the job goes.

use super::detect::standing;
use crate::Result;
use crate::engine::Engine;
use crate::scheduler::NAME;
use chrono::{DateTime, Utc};
use serde_json::json;
use std::time::Duration;
use windlass_core::{AlertKind, Job, JobStatus};
use windlass_store::{JobFilter, NewAlert};

/// Jobs looked at in each status, the newest.
const MOST: u32 = 200;

impl Engine {
    /// Scheduled jobs that have not ended and will not have by their deadline, as they go. The
    /// deadline is that of the definition a job was submitted with, whatever this server's file says.
    pub(super) async fn find_late_jobs(&self) -> Result<()> {
        let now = self.store().now().await?;
        for status in [JobStatus::Queued, JobStatus::Processing, JobStatus::Paused] {
            let filter = JobFilter {
                status: Some(status),
                submitted_by: Some(NAME.to_owned()),
                limit: MOST,
                ..JobFilter::default()
            };
            for job in self.store().jobs(&filter).await? {
                if let Some(deadline) = self.deadline(&job).await? {
                    self.hold_against(deadline, job, now).await?;
                }
            }
        }
        Ok(())
    }

    async fn deadline(&self, job: &Job) -> Result<Option<DateTime<Utc>>> {
        let Some(pinned) = self.store().pinned(job.id).await? else { return Ok(None) };
        let deadline = pinned.definition.schedule.and_then(|schedule| schedule.deadline);
        let time = job.request.idempotency_key.as_deref().and_then(|key| key.parse().ok());
        Ok(time.zip(deadline).map(|(time, deadline): (DateTime<Utc>, _)| time + deadline))
    }

    async fn hold_against(
        &self,
        deadline: DateTime<Utc>,
        job: Job,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let end = projected_end(&job, now);
        let what = match end {
            _ if deadline < now => "has passed its deadline",
            Some(end) if deadline < end => "is going to miss its deadline as it goes",
            _ => return Ok(()),
        };
        let mut details = standing(&job);
        details["deadline"] = json!(deadline);
        details["projectedEnd"] = json!(end);
        let kind = AlertKind::DeadlineAtRisk;
        self.raise(NewAlert {
            kind,
            subject: format!("{}@{}", job.id, deadline.timestamp_millis()),
            message: format!("job {} of {} {what}, {deadline}", job.id, job.job_type),
            job_type: job.job_type,
            job: Some((job.id, job.submitted_by)),
            details,
            above: None,
            after: Duration::ZERO,
            post: self.config().alerts.posts(kind),
        })
        .await
    }
}

/// When a job will end if it goes on as it has; now at the earliest. Unknown before it has begun
/// to work.
fn projected_end(job: &Job, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let items = &job.items;
    let done = items.processed + items.skipped + items.dead;
    let so_far = now - job.started_at?;
    let left = (items.total - done).max(0) as f64 / done.max(1) as f64;
    let left = so_far.as_seconds_f64() * left;
    Some(now + chrono::TimeDelta::milliseconds((left * 1000.0).min(1e15) as i64))
}
