//! What of the store a caller sees: their own jobs and what belongs to them, or everything.

use crate::App;
use crate::auth::Caller;
use crate::problem::{Answer, Failure};
use std::time::Duration;
use uuid::Uuid;
use windlass_core::{Job, JobId};
use windlass_store::{
    Alert, AlertFilter, DeadLetter, DeadLetterFilter, DeadLetterGroup, HourlyJobs, JobFilter,
    WorkerRow,
};

impl App {
    /// A job that the caller sees. Others' jobs are not there.
    pub(crate) async fn job(&self, caller: &Caller, id: JobId) -> Answer<Job> {
        let job = self.engine.store().job(id).await?;
        let seen = job.filter(|job| caller.sees(&job.job_type, &job.submitted_by));
        seen.ok_or_else(|| Failure::not_found("job", id))
    }

    /// A job that the caller sees, as listings show it: without what is large of its request.
    pub(crate) async fn listed(&self, caller: &Caller, id: JobId) -> Answer<Job> {
        let job = crate::watch::listed(self.engine.store().as_ref(), id).await?;
        let seen = job.filter(|job| caller.sees(&job.job_type, &job.submitted_by));
        seen.ok_or_else(|| Failure::not_found("job", id))
    }

    /// A page of the jobs that the caller sees.
    pub(crate) async fn jobs(&self, caller: &Caller, mut filter: JobFilter) -> Answer<Vec<Job>> {
        (filter.job_types, filter.submitted_by) = self.scope(caller);
        Ok(self.engine.store().jobs(&filter).await?)
    }

    /// A dead letter that the caller sees.
    pub(crate) async fn letter(&self, caller: &Caller, id: Uuid) -> Answer<DeadLetter> {
        let filter = DeadLetterFilter { ids: vec![id], limit: 1, ..DeadLetterFilter::default() };
        let found = self.letters(caller, filter).await?.pop();
        found.ok_or_else(|| Failure::not_found("dead letter", id))
    }

    /// A page of the dead letters that the caller sees.
    pub(crate) async fn letters(
        &self,
        caller: &Caller,
        filter: DeadLetterFilter,
    ) -> Answer<Vec<DeadLetter>> {
        Ok(self.engine.store().dead_letters(&self.own(caller, filter)).await?)
    }

    /// Those letters by what they died of.
    pub(crate) async fn letter_groups(
        &self,
        caller: &Caller,
        filter: DeadLetterFilter,
    ) -> Answer<Vec<DeadLetterGroup>> {
        Ok(self.engine.store().dead_letter_groups(&self.own(caller, filter)).await?)
    }

    /// The jobs that the caller sees and that were submitted no longer ago than this, by the hour.
    pub(crate) async fn hours(&self, caller: &Caller, age: Duration) -> Answer<Vec<HourlyJobs>> {
        let (types, submitter) = self.scope(caller);
        Ok(self.engine.store().hourly_jobs(age, submitter.as_deref(), types.as_deref()).await?)
    }

    /// The processes that work. What they are at is for those who see everybody's jobs.
    pub(crate) async fn workers(&self, caller: &Caller) -> Answer<Vec<WorkerRow>> {
        let mut workers = self.engine.store().workers().await?;
        if !caller.sees_all() {
            workers.iter_mut().for_each(|worker| worker.job_types = None);
        }
        Ok(workers)
    }

    /// A page of the alerts that the caller sees. What is about no job in particular is for those
    /// who see all of them.
    pub(crate) async fn alerts(
        &self,
        caller: &Caller,
        mut filter: AlertFilter,
    ) -> Answer<Vec<Alert>> {
        (filter.job_types, filter.submitted_by) = self.scope(caller);
        Ok(self.engine.store().alerts(&filter).await?)
    }

    /// Those of the letters that are the caller's to look at and to act on.
    pub(crate) fn own(&self, caller: &Caller, filter: DeadLetterFilter) -> DeadLetterFilter {
        let (job_types, submitted_by) = self.scope(caller);
        DeadLetterFilter { job_types, submitted_by, ..filter }
    }

    /// Refuses a job type that is not there, or not for the caller: both read the same.
    pub(crate) fn known(&self, caller: &Caller, job_type: &str) -> Answer<()> {
        let found = self.engine.config().jobs.contains_key(job_type) && caller.covers(job_type);
        found.then_some(()).ok_or_else(|| Failure::not_found("job type", job_type))
    }

    /// The job types of a caller's lists, and whose jobs they have.
    fn scope(&self, caller: &Caller) -> (Option<Vec<String>>, Option<String>) {
        let types = caller.only_types(self.engine.config());
        let submitter = caller.only_submitter(types.as_deref());
        (types, submitter)
    }
}
