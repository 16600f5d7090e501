//! The scheduler: submits job types when their time has come.
//!
//! A firing's time is the idempotency key of its job, and the schedule moves on from exactly the
//! time that was seen to. So however many processes keep the time, and wherever one of them dies,
//! each time is fired once.

use crate::Result;
use crate::engine::Engine;
use chrono::{DateTime, Utc};
use std::time::Duration;
use windlass_core::problem::Code;
use windlass_core::{
    Identity, Job, JobId, JobStatus, JobType, Overlap, Problem, Request, Schedule,
};
use windlass_store::{JobFilter, ScheduleRow};

/// How often it looks what is due.
const ROUND: Duration = Duration::from_secs(1);
/// The submitter's name of scheduled jobs.
pub const SCHEDULER: &str = "schedule";

impl Engine {
    /// Keeps all schedules of the configuration, for as long as it is polled.
    pub async fn keep_schedules(&self) {
        let mut known = false;
        loop {
            let round = async {
                if !known {
                    self.put_schedules().await?;
                    known = true;
                }
                self.fire_due().await
            };
            if let Err(error) = round.await {
                tracing::warn!(%error, "schedules cannot be kept; trying again");
            }
            tokio::time::sleep(ROUND).await;
        }
    }

    /// Fires everything that is due now; says how many jobs that made. Where a schedule cannot be
    /// fired it says why and is tried again.
    pub async fn fire_due(&self) -> Result<u64> {
        let mut fired = 0;
        for row in self.store().schedules().await? {
            let Some((job_type, schedule)) = self.schedule_of(&row) else { continue };
            if let (Some(stored), Some(next)) = (row.next_at, schedule.next_after(row.now))
                && stored > next
                && !row.paused
            {
                // The store's clock was ahead when this was written. A time that was fired already
                // finds its job by its idempotency key.
                self.store().advance_schedule(&job_type.name, stored, Some(next), None).await?;
                continue;
            }
            let Some(due) = row.next_at.filter(|next| *next <= row.now && !row.paused) else {
                continue;
            };
            match self.fire(job_type, schedule, due, row.now).await {
                Ok(jobs) => fired += jobs,
                Err(error) => {
                    let error = error.to_string();
                    if row.error.as_ref() != Some(&error) {
                        tracing::warn!(job_type = job_type.name, %due, error, "cannot be fired");
                        self.store().fail_schedule(&job_type.name, &error).await?;
                    }
                }
            }
        }
        Ok(fired)
    }

    /// Pauses the schedule of a job type, or lets it go on with the next time from now: what came
    /// meanwhile was not wanted.
    pub async fn pause_schedule(&self, job_type: &str, paused: bool) -> Result<()> {
        self.put_schedules().await?;
        let schedule = self.shared.config.job_type(job_type)?.schedule.as_ref();
        let next = match (schedule, paused) {
            (Some(schedule), false) => schedule.next_after(self.store().now().await?),
            _ => None,
        };
        if schedule.is_some() && self.store().pause_schedule(job_type, paused, next).await? {
            return Ok(());
        }
        let detail = format!("`{job_type}` has no schedule");
        Err(Problem::new(Code::NotFound, detail).into())
    }

    /// Makes the store know the schedules of the configuration.
    pub async fn put_schedules(&self) -> Result<()> {
        for job_type in self.shared.config.jobs.values() {
            if let Some(schedule) = &job_type.schedule {
                let next = schedule.next_after(self.store().now().await?);
                self.store().put_schedule(&job_type.name, &spec(schedule), next).await?;
            }
        }
        Ok(())
    }

    /// The schedule of this process's configuration that a row is of. A process with another one
    /// leaves it alone.
    fn schedule_of(&self, row: &ScheduleRow) -> Option<(&JobType, &Schedule)> {
        let job_type = self.shared.config.jobs.get(&row.job_type)?;
        let schedule = job_type.schedule.as_ref()?;
        (spec(schedule) == row.spec).then_some((job_type, schedule))
    }

    async fn fire(
        &self,
        job_type: &JobType,
        schedule: &Schedule,
        due: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64> {
        let (times, next) = schedule.due(due, now);
        let (mut from, mut fired) = (due, 0);
        for (place, time) in times.iter().enumerate() {
            let to = times.get(place + 1).copied().or(next);
            let job = self.submit_at(job_type, schedule, *time).await?;
            if !self
                .store()
                .advance_schedule(&job_type.name, from, to, job.map(|job| (*time, job)))
                .await?
            {
                // Another process sees to the rest.
                return Ok(fired);
            }
            fired += u64::from(job.is_some());
            from = to.unwrap_or(from);
        }
        if times.is_empty() {
            tracing::warn!(job_type = job_type.name, %due, "missed, and left out as `missed` says");
            self.store().advance_schedule(&job_type.name, due, next, None).await?;
        }
        Ok(fired)
    }

    /// Submits the job of one time, unless the one before is still there and `overlap` says so.
    async fn submit_at(
        &self,
        job_type: &JobType,
        schedule: &Schedule,
        time: DateTime<Utc>,
    ) -> Result<Option<JobId>> {
        let key = time.to_rfc3339();
        let before = match schedule.overlap {
            Overlap::Queue => Vec::new(),
            Overlap::Skip | Overlap::CancelRunning => self.open_before(job_type, &key).await?,
        };
        if schedule.overlap == Overlap::Skip
            && let Some(job) = before.first()
        {
            tracing::warn!(job_type = job_type.name, %time, job = %job.id,
                "left out: the job before has not ended");
            return Ok(None);
        }
        for job in before {
            match self.store().cancel(job.id).await {
                Ok(_) => tracing::warn!(job = %job.id, "cancelled: its next time has come"),
                // It has just ended.
                Err(error) => tracing::debug!(job = %job.id, %error, "not cancelled"),
            }
        }
        let request = Request {
            params: schedule.params_at(time),
            idempotency_key: Some(key),
            ..Request::new(&job_type.name)
        };
        let claims = schedule.claims();
        let identity = Identity { name: SCHEDULER.to_owned(), claims, ..Identity::default() };
        Ok(Some(self.submit(request, identity).await?.id()))
    }

    /// The scheduled jobs of a type that have not ended, but for that of this key.
    async fn open_before(&self, job_type: &JobType, key: &str) -> Result<Vec<Job>> {
        let mut open = Vec::new();
        for status in [JobStatus::Queued, JobStatus::Processing, JobStatus::Paused] {
            let (name, status) = (Some(job_type.name.clone()), Some(status));
            let filter = JobFilter { job_type: name, status, limit: 1000, ..JobFilter::default() };
            open.extend(self.store().jobs(&filter).await?);
        }
        open.retain(|job| {
            job.submitted_by == SCHEDULER && job.request.idempotency_key.as_deref() != Some(key)
        });
        Ok(open)
    }
}

/// What of a schedule its next time depends on.
fn spec(schedule: &Schedule) -> String {
    format!("{} {}", schedule.cron, schedule.timezone)
}
