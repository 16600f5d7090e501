//! The scheduler: submits jobs by the cron schedules of their job types.
//!
//! The scheduled time is the idempotency key of the job, and a schedule advances by compare-and-set
//! from exactly the time that was fired. So each time fires once, with any number of schedulers and
//! whenever one of them crashes.

use crate::Result;
use crate::engine::Engine;
use crate::quiet::{Pause, QUIET_POLL_INTERVAL};
use chrono::{DateTime, Utc};
use std::time::Duration;
use windlass_core::params::DATE;
use windlass_core::problem::Code;
use windlass_core::{
    Identity, Job, JobId, JobStatus, JobType, Overlap, Problem, Request, Schedule,
};
use windlass_store::{JobFilter, ScheduleRow};

/// How often due schedules are looked up.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The submitter's name for scheduled jobs.
pub const SCHEDULER: &str = "schedule";

impl Engine {
    /// Fires all schedules in the configuration. Runs until the future is dropped.
    pub async fn run_scheduler(&self) {
        if self.config().jobs.values().all(|job_type| job_type.schedule.is_none()) {
            return std::future::pending().await;
        }
        let mut registered = false;
        let mut pause = Pause::new(self);
        loop {
            let round = async {
                if !registered {
                    self.register_schedules().await?;
                    registered = true;
                }
                self.fire_round().await
            };
            let (_, until_next) = round.await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to process schedules; retrying");
                (0, Duration::ZERO)
            });
            pause.wait_at_most(POLL_INTERVAL, until_next.min(QUIET_POLL_INTERVAL)).await;
        }
    }

    /// Fires everything that is due now and returns the number of jobs submitted. A schedule that
    /// cannot be fired is recorded with its error and retried.
    ///
    /// # Errors
    /// The store fails.
    pub async fn fire_due(&self) -> Result<u64> {
        Ok(self.fire_round().await?.0)
    }

    /// [`Engine::fire_due`]. Also returns how long nothing more is due.
    async fn fire_round(&self) -> Result<(u64, Duration)> {
        let rows = self.store().schedules().await?;
        let waits = rows.iter().filter_map(|row| Some(row.next_at? - row.now));
        // Negative for a schedule that is due: it has a new time after this round.
        let until_next = waits.min().and_then(|wait| wait.to_std().ok()).unwrap_or_default();
        let mut fired = 0;
        for row in rows {
            let Some((job_type, schedule)) = self.schedule_of(&row) else { continue };
            if let (Some(stored), Some(next)) = (row.next_at, schedule.next_after(row.now))
                && stored > next
                && !row.paused
            {
                // The store's clock was ahead when this was written, so move back. A time that has
                // already fired finds its job by the idempotency key.
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
                        tracing::warn!(job_type = job_type.name, %due, error, "cannot fire schedule; retrying");
                        self.store().fail_schedule(&job_type.name, &error).await?;
                    }
                }
            }
        }
        Ok((fired, until_next))
    }

    /// Pauses or resumes the schedule of a job type. A resumed schedule continues with its next time
    /// from now; times that passed while it was paused are not fired.
    ///
    /// # Errors
    /// The job type has no schedule, or the store fails.
    pub async fn pause_schedule(&self, job_type: &str, paused: bool) -> Result<()> {
        self.register_schedules().await?;
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

    /// Stores the schedules of the configuration.
    ///
    /// # Errors
    /// The store fails.
    pub async fn register_schedules(&self) -> Result<()> {
        for job_type in self.shared.config.jobs.values() {
            if let Some(schedule) = &job_type.schedule {
                let next = schedule.next_after(self.store().now().await?);
                self.store().put_schedule(&job_type.name, &spec(schedule), next).await?;
            }
        }
        Ok(())
    }

    /// The schedule in this process's configuration that a row belongs to; `None` if the configuration
    /// has a different one, which leaves the row to other processes.
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
        for (index, time) in times.iter().enumerate() {
            let to = times.get(index + 1).copied().or(next);
            let job = self.submit_at(job_type, schedule, *time).await?;
            let fired_job = job.map(|job| (*time, job));
            if !self.store().advance_schedule(&job_type.name, from, to, fired_job).await? {
                // Another process has fired this time and continues with the next ones.
                return Ok(fired);
            }
            fired += u64::from(job.is_some());
            from = to.unwrap_or(from);
        }
        if times.is_empty() {
            tracing::warn!(job_type = job_type.name, %due, "schedule time missed; not fired because of the `missed` setting");
            self.store().advance_schedule(&job_type.name, due, next, None).await?;
        }
        Ok(fired)
    }

    /// Submits the job for one scheduled time. If the previous job has not ended, `overlap` decides.
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
                "schedule time skipped: the previous job has not ended");
            return Ok(None);
        }
        for job in before {
            match self.store().cancel(job.id).await {
                Ok(_) => {
                    tracing::warn!(job = %job.id, "cancelled running job: its next scheduled time has come")
                }
                // The job has just ended.
                Err(error) => tracing::debug!(job = %job.id, %error, "previous job not cancelled"),
            }
        }
        let mut params = schedule.params_at(time);
        params.entry(DATE.to_owned()).or_insert_with(|| schedule.date_at(time).into());
        let request =
            Request { params, idempotency_key: Some(key), ..Request::new(&job_type.name) };
        let claims = schedule.claims();
        let identity = Identity { name: SCHEDULER.to_owned(), claims, ..Identity::default() };
        Ok(Some(self.submit(request, identity).await?.id()))
    }

    /// The scheduled jobs of a type that have not ended, except the one with this idempotency key.
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

/// The settings of a schedule that determine its next time.
fn spec(schedule: &Schedule) -> String {
    format!("{} {}", schedule.cron, schedule.timezone)
}
