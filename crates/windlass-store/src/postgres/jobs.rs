//! Submits and reads jobs.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::{Job, JobId, JobStatus};
use windlass_drivers::{Param, Row};

use super::{PostgresStore, Transaction, dependencies, params, sql, texts};
use crate::fields::Fields;
use crate::values::{self, JobColumns, PlanColumns};
use crate::{
    JobFilter, JobSnapshot, JobStore, NewJob, Owner, Result, StoreError, Submitted, Topics, rows,
    transitions,
};

#[async_trait]
impl JobStore for PostgresStore {
    async fn submit(&self, job: NewJob) -> Result<Submitted> {
        let columns = Arc::new(JobColumns::of(&job, false)?);
        // Most jobs have no parents and no earlier request with their key: one statement inserts them.
        if job.request.after.is_none() && self.insert(columns.clone()).await? {
            return Ok(Submitted::New(job.id));
        }
        let run = || async {
            let tx = self.begin().await?;
            let done = submit(&tx, &job, &columns).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.read_job(id).await
    }

    async fn status(&self, id: JobId) -> Result<Option<JobStatus>> {
        self.read_by_key(sql!(shared "find_job"), params![id], |row| row.status("status")).await
    }

    async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>> {
        let job_type = filter.job_type.as_deref();
        let status = filter.status.map(|status| status.as_str());
        let by = filter.submitted_by.as_deref();
        let types = texts(filter.job_types.as_deref());
        let limit = values::list_limit(filter.limit);
        let params = params![job_type, status, filter.before, limit, by, filter.id, types];
        self.read(sql!("list_jobs", "job_sums"), params, rows::job).await
    }

    async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>> {
        self.read(sql!("owners"), params![jobs.to_vec()], rows::owner).await
    }

    async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>> {
        let params = params![submitted_by, limit];
        self.read(sql!("open_jobs"), params, |row: &Row| row.id("id")).await
    }

    async fn has_open_work(&self) -> Result<bool> {
        let is_open = |row: &Row| row.flag("is_open");
        Ok(self.read_first(sql!(shared "has_open_work"), &[], is_open).await?.unwrap_or(true))
    }

    async fn matching_jobs(&self, text: &str, limit: u32) -> Result<Vec<JobId>> {
        self.read(sql!("matching_jobs"), params![text, limit], |row: &Row| row.id("id")).await
    }

    async fn snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>> {
        self.read_snapshot(id).await
    }

    async fn redrive_chain(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
        self.read(sql!(shared "redrive_chain"), params![root], rows::chained_job).await
    }
}

async fn submit(tx: &Transaction, job: &NewJob, columns: &JobColumns) -> Result<Submitted> {
    // A repeated request gives the same job, even if its parents would be refused now.
    if job.request.after.is_some()
        && let Some(submitted) = existing(tx, job, columns).await?
    {
        return Ok(submitted);
    }
    let admission = dependencies::admit(tx, &job.request).await?;
    if insert(tx, columns, admission.waits()).await? {
        dependencies::link(tx, job.id, &admission).await?;
        return Ok(Submitted::New(job.id));
    }
    // The insert has waited for the transaction that inserted the same key, so its row is visible. At SERIALIZABLE
    // the insert fails instead, and the repeated transaction sees the row.
    let submitted = existing(tx, job, columns).await?;
    submitted.ok_or_else(|| StoreError::Unreadable(format!("job {}", job.id)))
}

/// Inserts a job with its plan, which is still to be made or complete, unless its id or idempotency key exists.
pub(super) async fn insert(tx: &Transaction, job: &JobColumns, waits: i64) -> Result<bool> {
    let inserted = tx.query_opt(sql!("insert_job"), &params_of(job, waits)).await?.is_some();
    if inserted {
        tx.signal_topics(topics(job));
    }
    Ok(inserted)
}

/// Who is told of a new job: the planners, or the workers if its chunks are planned.
pub(super) fn topics(job: &JobColumns) -> Topics {
    if job.plan.open_segments > 0 { Topics::SEGMENTS } else { Topics::CHUNKS }
}

/// The parameters of `insert_job.sql`.
pub(super) fn params_of(job: &JobColumns, waits: i64) -> [Param<'_>; 32] {
    let PlanColumns { segments: (states, ranges), chunks: (key_sets, items), .. } = &job.plan;
    [
        job.id.into(),
        job.root.into(),
        job.redrive.into(),
        (&job.job_type).into(),
        (&job.submitter).into(),
        job.idempotency_key.as_deref().into(),
        (&job.request).into(),
        (&job.identity).into(),
        (&job.definition).into(),
        (&job.definition_hash).into(),
        job.failures.as_str().into(),
        job.priority.into(),
        (&job.connection).into(),
        job.handler.as_deref().into(),
        job.lease.into(),
        job.timeout.into(),
        waits.into(),
        job.on_failed.into(),
        job.rules.as_deref().into(),
        job.merge.into(),
        job.summary.as_deref().into(),
        job.plan.open_segments.into(),
        job.plan.chunks_total().into(),
        job.plan.items_total.into(),
        job.concurrency.into(),
        job.rate.into(),
        states.as_slice().into(),
        ranges.as_slice().into(),
        job.plan.status_of_segments.into(),
        job.plan.segment_of_chunks.into(),
        key_sets.as_slice().into(),
        items.clone().into(),
    ]
}

/// The job that was submitted earlier with this id or idempotency key.
async fn existing(
    tx: &Transaction,
    job: &NewJob,
    columns: &JobColumns,
) -> Result<Option<Submitted>> {
    if tx.query_opt(sql!(shared "find_job"), params![job.id]).await?.is_some() {
        // The same submit, repeated because its answer was lost.
        return Ok(Some(Submitted::New(job.id)));
    }
    let (key, by) = (columns.idempotency_key.as_deref(), &columns.submitter);
    let row = tx.query_opt(sql!("find_by_key"), params![&columns.job_type, by, key]).await?;
    let Some(row) = row else { return Ok(None) };
    transitions::check_same_request(&row.text("request")?, &job.request)?;
    Ok(Some(Submitted::Existing(row.id("id")?)))
}
