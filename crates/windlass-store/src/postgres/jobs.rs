//! Submits and reads jobs.

use async_trait::async_trait;
use windlass_core::{Job, JobId, JobStatus};
use windlass_drivers::Row;

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
        let columns = JobColumns::of(&job, false)?;
        let run = || async {
            let tx = self.begin().await?;
            let done = submit(&tx, &job, &columns).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.read_by_key(sql!("show_job", "job_sums"), params![id], rows::job).await
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
        self.read_by_key(sql!(shared "snapshot"), params![id], rows::snapshot).await
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
    let inserted = tx
        .query_opt(
            sql!("insert_job"),
            params![
                job.id,
                job.root,
                job.redrive,
                &job.job_type,
                &job.submitter,
                job.idempotency_key.as_deref(),
                &job.request,
                &job.identity,
                &job.definition,
                &job.definition_hash,
                job.failures.as_str(),
                job.priority,
                &job.connection,
                job.handler.as_deref(),
                job.lease,
                job.timeout,
                waits,
                job.on_failed,
                job.rules.as_deref(),
                job.merge,
                job.summary.as_deref(),
                job.plan.open_segments,
                job.plan.chunks_total(),
                job.plan.items_total,
            ],
        )
        .await?;
    if inserted.is_none() {
        return Ok(false);
    }
    // The statements are sent together, which saves round trips.
    let limits = params![&job.job_type, job.concurrency, job.rate];
    let (limits, segments, chunks) = tokio::join!(
        biased;
        tx.execute(sql!("default_throughput"), limits),
        insert_segments(tx, job),
        insert_chunks(tx, job)
    );
    limits?;
    segments.and(chunks)?;
    Ok(true)
}

async fn insert_segments(tx: &Transaction, job: &JobColumns) -> Result<()> {
    let PlanColumns { segments: (states, ranges), status_of_segments, .. } = &job.plan;
    let (states, ranges) = (states.as_slice(), ranges.as_slice());
    let params = params![job.id, 0_i64, states, ranges, *status_of_segments];
    tx.execute(sql!("insert_segments"), params).await?;
    if job.plan.open_segments > 0 {
        tx.signal_topics(Topics::SEGMENTS);
    }
    Ok(())
}

async fn insert_chunks(tx: &Transaction, job: &JobColumns) -> Result<()> {
    let PlanColumns { chunks: (key_sets, items), segment_of_chunks, .. } = &job.plan;
    if !key_sets.is_empty() {
        let params = params![job.id, *segment_of_chunks, 0_i64, key_sets.as_slice(), items.clone()];
        tx.execute(sql!("insert_chunks"), params).await?;
        tx.signal_topics(Topics::CHUNKS);
    }
    Ok(())
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
