//! Raises alerts for scheduled jobs that have missed or will probably miss their deadline.

use super::detect::job_summary;
use crate::Result;
use crate::engine::Engine;
use crate::submit::scheduler::SCHEDULER;
use chrono::{DateTime, Utc};
use serde_json::json;
use std::time::Duration;
use windlass_core::{AlertKind, Job, JobId};
use windlass_store::NewAlert;

/// Jobs checked per round, oldest first.
const MAX_JOBS: u32 = 200;

impl Engine {
    /// Finds scheduled jobs that have passed their deadline, or will at their present rate. The deadline
    /// is that of the definition the job was submitted with, not of this process's configuration.
    pub(super) async fn find_late_jobs(&self) -> Result<()> {
        let now = self.store().now().await?;
        for id in self.store().open_jobs(SCHEDULER, MAX_JOBS).await? {
            if let Some(deadline) = self.deadline(id).await?
                && let Some(job) = self.store().job(id).await?.filter(|job| !job.status.is_final())
            {
                self.check_deadline(deadline, job, now).await?;
            }
        }
        Ok(())
    }

    /// The deadline of a scheduled job.
    pub async fn deadline(&self, job: JobId) -> Result<Option<DateTime<Utc>>> {
        let Some(snapshot) = self.store().snapshot(job).await? else { return Ok(None) };
        let deadline = snapshot.definition.schedule.and_then(|schedule| schedule.deadline);
        let time = snapshot.request.idempotency_key.as_deref().and_then(|key| key.parse().ok());
        Ok(time.zip(deadline).map(|(time, deadline): (DateTime<Utc>, _)| time + deadline))
    }

    async fn check_deadline(
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
        let mut details = job_summary(&job);
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
            threshold: None,
            sustained_for: Duration::ZERO,
            post: self.config().alerts.posts(kind),
        })
        .await
    }
}
