//! Store queries restricted to what the caller may see: their own jobs, or those that roles add.

use crate::App;
use crate::auth::Caller;
use crate::problem::{ApiError, ApiResult};
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{Job, JobId};
use windlass_store::{
    Alert, AlertFilter, DeadLetter, DeadLetterFilter, DeadLetterGroup, HourlyJobs, JobFilter,
    WorkerRow,
};

impl App {
    /// A job, or 404 if the caller may not see it.
    pub(crate) async fn job(&self, caller: &Caller, id: JobId) -> ApiResult<Job> {
        let job = self.engine.store().job(id).await?;
        let seen = job.filter(|job| caller.sees(&job.job_type, &job.submitted_by));
        let job = seen.ok_or_else(|| ApiError::not_found("job", id))?;
        let outputs = self.engine.outputs(&job).await?;
        Ok(Job { outputs, ..job })
    }

    /// A job without the large parts of its request, or 404 if the caller may not see it.
    pub(crate) async fn job_summary(&self, caller: &Caller, id: JobId) -> ApiResult<Job> {
        let job = crate::watch::job_summary(self.engine.store().as_ref(), id).await?;
        let seen = job.filter(|job| caller.sees(&job.job_type, &job.submitted_by));
        seen.ok_or_else(|| ApiError::not_found("job", id))
    }

    /// A page of the visible jobs.
    pub(crate) async fn jobs(&self, caller: &Caller, mut filter: JobFilter) -> ApiResult<Vec<Job>> {
        (filter.job_types, filter.submitted_by) = self.scope(caller);
        Ok(self.engine.store().jobs(&filter).await?)
    }

    /// A dead letter, or 404 if the caller may not see it.
    pub(crate) async fn dead_letter(&self, caller: &Caller, id: Uuid) -> ApiResult<DeadLetter> {
        let filter = DeadLetterFilter { ids: vec![id], limit: 1, ..DeadLetterFilter::default() };
        let found = self.dead_letters(caller, filter).await?.pop();
        found.ok_or_else(|| ApiError::not_found("dead letter", id))
    }

    /// A page of the visible dead letters.
    pub(crate) async fn dead_letters(
        &self,
        caller: &Caller,
        filter: DeadLetterFilter,
    ) -> ApiResult<Vec<DeadLetter>> {
        Ok(self.engine.store().dead_letters(&self.restrict(caller, filter)).await?)
    }

    /// The visible dead letters grouped by error.
    pub(crate) async fn dead_letter_groups(
        &self,
        caller: &Caller,
        filter: DeadLetterFilter,
    ) -> ApiResult<Vec<DeadLetterGroup>> {
        Ok(self.engine.store().dead_letter_groups(&self.restrict(caller, filter)).await?)
    }

    /// The visible jobs that were submitted within `age`, counted by hour.
    pub(crate) async fn hourly_jobs(
        &self,
        caller: &Caller,
        age: Duration,
    ) -> ApiResult<Vec<HourlyJobs>> {
        let (types, submitter) = self.scope(caller);
        Ok(self.engine.store().hourly_jobs(age, submitter.as_deref(), types.as_deref()).await?)
    }

    /// The worker processes. Their job types are shown only to callers who see all jobs.
    pub(crate) async fn workers(&self, caller: &Caller) -> ApiResult<Vec<WorkerRow>> {
        let mut workers = self.engine.store().workers().await?;
        if !caller.sees_all() {
            workers.iter_mut().for_each(|worker| worker.job_types = None);
        }
        Ok(workers)
    }

    /// A page of the visible alerts. Alerts about job types are visible to callers who see all jobs.
    pub(crate) async fn alerts(
        &self,
        caller: &Caller,
        mut filter: AlertFilter,
    ) -> ApiResult<Vec<Alert>> {
        (filter.job_types, filter.submitted_by) = self.scope(caller);
        Ok(self.engine.store().alerts(&filter).await?)
    }

    /// An alert, or 404 if the caller may not see it.
    pub(crate) async fn alert(&self, caller: &Caller, id: Uuid) -> ApiResult<Alert> {
        let filter = AlertFilter { id: Some(id), limit: 1, ..AlertFilter::default() };
        let found = self.alerts(caller, filter).await?.pop();
        found.ok_or_else(|| ApiError::not_found("alert", id))
    }

    /// Restricts a filter to the dead letters that the caller may see and act on.
    pub(crate) fn restrict(&self, caller: &Caller, filter: DeadLetterFilter) -> DeadLetterFilter {
        let (job_types, submitted_by) = self.scope(caller);
        DeadLetterFilter { job_types, submitted_by, ..filter }
    }

    /// Fails with 404 for a job type that does not exist or that the caller may not use.
    pub(crate) fn check_job_type(&self, caller: &Caller, job_type: &str) -> ApiResult<()> {
        let found = self.engine.config().jobs.contains_key(job_type) && caller.covers(job_type);
        found.then_some(()).ok_or_else(|| ApiError::not_found("job type", job_type))
    }

    /// The job types and the submitter that the caller is restricted to.
    fn scope(&self, caller: &Caller) -> (Option<Vec<String>>, Option<String>) {
        let types = caller.visible_types(self.engine.config());
        let submitter = caller.visible_submitter(types.as_deref());
        (types, submitter)
    }
}
