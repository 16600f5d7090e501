//! Deadlines of scheduled jobs: passed, or at risk as the job goes.

use super::detect::standing;
use crate::Result;
use crate::engine::Engine;
use crate::submit::scheduler::SCHEDULER;
use chrono::{DateTime, Utc};
use serde_json::json;
use std::time::Duration;
use windlass_core::{AlertKind, Job, JobId};
use windlass_store::NewAlert;

/// Jobs looked at, the oldest.
const MOST: u32 = 200;

impl Engine {
    /// Scheduled jobs that have not ended and will not have by their deadline, as they go. The
    /// deadline is that of the definition a job was submitted with, whatever this server's file says.
    pub(super) async fn find_late_jobs(&self) -> Result<()> {
        let now = self.store().now().await?;
        for id in self.store().open_jobs(SCHEDULER, MOST).await? {
            if let Some(deadline) = self.deadline(id).await?
                && let Some(job) = self.store().job(id).await?.filter(|job| !job.status.is_final())
            {
                self.hold_against(deadline, job, now).await?;
            }
        }
        Ok(())
    }

    /// When a scheduled job should have ended.
    pub async fn deadline(&self, job: JobId) -> Result<Option<DateTime<Utc>>> {
        let Some(snapshot) = self.store().snapshot(job).await? else { return Ok(None) };
        let deadline = snapshot.definition.schedule.and_then(|schedule| schedule.deadline);
        let time = snapshot.request.idempotency_key.as_deref().and_then(|key| key.parse().ok());
        Ok(time.zip(deadline).map(|(time, deadline): (DateTime<Utc>, _)| time + deadline))
    }

    async fn hold_against(
        &self,
        deadline: DateTime<Utc>,
        job: Job,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let end = job.projected_end(now);
        let what = match end {
            _ if deadline < now => "is past its deadline",
            Some(end) if deadline < end => "is projected to miss its deadline",
            _ => return Ok(()),
        };
        let mut details = standing(&job);
        details["deadline"] = json!(deadline);
        details["projectedEnd"] = json!(end);
        let kind = AlertKind::DeadlineAtRisk;
        self.raise(NewAlert {
            kind,
            subject: format!("{}@{}", job.id, deadline.timestamp_millis()),
            message: format!("job {} of {} {what} {deadline}", job.id, job.job_type),
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
