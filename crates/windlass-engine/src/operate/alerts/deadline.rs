//! Raises alerts for scheduled jobs that have missed or will probably miss their deadline, and ends them.

use super::detect::job_summary;
use super::recent_progress::RecentProgress;
use crate::Result;
use crate::engine::Engine;
use crate::submit::scheduler::SCHEDULER;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use windlass_core::{AlertKind, Job, JobId, Phase};
use windlass_store::NewAlert;

/// Jobs checked per round, oldest first.
const MAX_JOBS: u32 = 200;
/// The alert of a running job ends when the job is projected to end before its deadline by this part
/// of the remaining time, so that a small change of the rate does not raise and end it in turn.
const MARGIN: i32 = 10;

/// The recent progress of scheduled jobs with a deadline, as this process has seen it. A process that has just started
/// projects nothing until it has seen a rate.
#[derive(Default)]
pub(crate) struct ProgressOfJobs(Mutex<HashMap<JobId, RecentProgress>>);

impl ProgressOfJobs {
    /// Records the progress of a job.
    fn record(&self, job: &Job, now: DateTime<Utc>) {
        if let Some(worked) = job.working_time(now) {
            self.0.lock().entry(job.id).or_default().record(worked, job.items.done());
        }
    }

    /// When a job will end at its recent rate. Unknown without a rate, and while it is planned, since the number of
    /// its items is not known before.
    fn projected_end(&self, job: &Job, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let worked = job.working_time(now).filter(|_| job.phase != Some(Phase::Planning))?;
        let left = job.items.total - job.items.done();
        Some(now + self.0.lock().get(&job.id)?.time_left(worked, left)?)
    }

    /// Forgets all jobs except these.
    fn retain(&self, jobs: &HashSet<JobId>) {
        self.0.lock().retain(|job, _| jobs.contains(job));
    }
}

impl Engine {
    /// Finds scheduled jobs that have passed their deadline, or will at their present rate. The deadline
    /// is that of the definition the job was submitted with, not of this process's configuration.
    pub(super) async fn find_late_jobs(&self) -> Result<()> {
        let now = self.store().now().await?;
        let mut running = Vec::new();
        for id in self.store().open_jobs(SCHEDULER, MAX_JOBS).await? {
            if let Some(deadline) = self.deadline(id).await?
                && let Some(job) = self.store().job(id).await?.filter(|job| !job.status.is_final())
            {
                self.shared.progress.record(&job, now);
                running.push((deadline, job));
            }
        }
        self.shared.progress.retain(&running.iter().map(|(_, job)| job.id).collect());
        for (subject, _) in self.store().open_alerts(AlertKind::DeadlineAtRisk).await? {
            self.clear_deadline(&subject, now).await?;
        }
        for (deadline, job) in running {
            self.check_deadline(deadline, job, now).await?;
        }
        Ok(())
    }

    /// The deadline of a scheduled job.
    ///
    /// # Errors
    /// The store fails.
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
        let end = self.shared.progress.projected_end(&job, now);
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
            threshold: Some(0),
            sustained_for: Duration::ZERO,
            post: self.config().alerts.posts(kind),
        })
        .await
    }

    /// Ends the alert of a job that has ended, or that will end well before its deadline.
    async fn clear_deadline(&self, subject: &str, now: DateTime<Utc>) -> Result<()> {
        let Some((id, deadline)) = parse_subject(subject) else { return Ok(()) };
        let reason = match self.store().job(id).await? {
            None => format!("job {id} was deleted"),
            Some(job) if job.status.is_final() => {
                let ended = job.finished_at.unwrap_or(now);
                let side = if ended > deadline { "after" } else { "before" };
                let by = (ended - deadline).abs().to_std().unwrap_or_default();
                let by = Duration::from_secs(by.as_secs());
                format!(
                    "job {id} of {} ended {} {by:?} {side} its deadline",
                    job.job_type, job.status
                )
            }
            Some(job) => match self.shared.progress.projected_end(&job, now) {
                Some(end) if end + margin(end - now) < deadline => {
                    format!("job {id} of {} is projected to end in time, at {end}", job.job_type)
                }
                _ => return Ok(()),
            },
        };
        self.clear(AlertKind::DeadlineAtRisk, subject, &reason).await
    }
}

/// The time by which a job must be ahead of its deadline.
fn margin(remaining: TimeDelta) -> TimeDelta {
    remaining.max(TimeDelta::zero()) / MARGIN
}

/// The job and the deadline of an alert.
fn parse_subject(subject: &str) -> Option<(JobId, DateTime<Utc>)> {
    let (job, deadline) = subject.split_once('@')?;
    Some((job.parse().ok()?, DateTime::from_timestamp_millis(deadline.parse().ok()?)?))
}
