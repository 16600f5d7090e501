//! Deadlines of scheduled jobs: passed, or at risk as the job goes.

use super::detect::standing;
use crate::Result;
use crate::engine::Engine;
use crate::scheduler::SCHEDULER;
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
        let Some(pinned) = self.store().pinned(job).await? else { return Ok(None) };
        let deadline = pinned.definition.schedule.and_then(|schedule| schedule.deadline);
        let time = pinned.request.idempotency_key.as_deref().and_then(|key| key.parse().ok());
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
pub fn projected_end(job: &Job, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let items = &job.items;
    let done = items.done();
    let so_far = now - job.started_at?;
    let left = (items.total - done).max(0) as f64 / done.max(1) as f64;
    let left = so_far.as_seconds_f64() * left;
    Some(now + chrono::TimeDelta::milliseconds((left * 1000.0).min(1e15) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    fn end(started: Option<i64>, done: i64, now: i64) -> Option<i64> {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let mut job = json!({
            "id": JobId::nil(), "jobType": "J", "status": "PROCESSING", "priority": 5,
            "request": {"jobType": "J"}, "submittedBy": "me", "createdAt": at(0),
            "items": {"total": 100, "processed": done, "skipped": 0, "dead": 0, "conflicts": 0},
            "chunks": {"total": 1, "pending": 0, "processing": 1, "completed": 0, "failed": 0,
                "cancelled": 0},
        });
        job["startedAt"] = started.map_or(Json::Null, |started| json!(at(started)));
        let job: Job = serde_json::from_value(job).unwrap();
        projected_end(&job, at(now)).map(|end| end.timestamp())
    }

    #[test]
    fn a_job_is_expected_to_go_on_as_it_has() {
        assert_eq!(end(None, 0, 50), None);
        assert_eq!(end(Some(0), 50, 50), Some(100));
        assert_eq!(end(Some(0), 100, 50), Some(50), "now at the earliest");
        assert!(end(Some(0), 0, 50).unwrap() > 1000, "nothing done yet");
    }
}
