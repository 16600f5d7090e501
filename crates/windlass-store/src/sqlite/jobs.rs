//! Submits and reads jobs.

use async_trait::async_trait;
use windlass_core::{Job, JobId, JobStatus};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, dependencies, sql, without_null_check};
use crate::fields::Fields;
use crate::values::{self, JobColumns, PlanColumns};
use crate::{
    JobFilter, JobSnapshot, JobStore, NewJob, Owner, Result, StoreError, Submitted, rows,
    transitions,
};

#[async_trait]
impl JobStore for SqliteStore {
    async fn submit(&self, job: NewJob) -> Result<Submitted> {
        let columns = JobColumns::of(&job, false)?;
        self.write(move |tx| submit(tx, &job, &columns)).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        let sql = sql!("show_job", "job_sums");
        self.query_opt(sql, [id.to_string()], |row| rows::job(row)).await
    }

    async fn status(&self, id: JobId) -> Result<Option<JobStatus>> {
        self.query_opt(sql!(shared "find_job"), [id.to_string()], |row| row.status("status")).await
    }

    async fn jobs(&self, filter: &JobFilter) -> Result<Vec<Job>> {
        let job_type = filter.job_type.clone();
        let status = filter.status.map(|status| status.as_str());
        let before = filter.before.map(|id| id.to_string());
        let limit = values::list_limit(filter.limit);
        let by = filter.submitted_by.clone();
        let id = filter.id.map(|id| id.to_string());
        let types = filter.job_types.as_ref().map(serde_json::to_string).transpose()?;
        let sql = without_null_check(sql!("list_jobs", "job_sums"), &job_type, "?1");
        let sql = without_null_check(&sql, &status, "?2");
        let sql = without_null_check(&sql, &by, "?5");
        let sql = without_null_check(&sql, &id, "?6");
        let params = (job_type, status, before, limit, by, id, types);
        self.query(sql, params, |row| rows::job(row)).await
    }

    async fn owners(&self, jobs: &[JobId]) -> Result<Vec<Owner>> {
        let jobs = serde_json::to_string(jobs)?;
        self.query(sql!("owners"), [jobs], |row| rows::owner(row)).await
    }

    async fn open_jobs(&self, submitted_by: &str, limit: u32) -> Result<Vec<JobId>> {
        let params = (submitted_by.to_owned(), limit);
        self.query(sql!("open_jobs"), params, |row| row.id("id")).await
    }

    async fn has_open_work(&self) -> Result<bool> {
        self.read(|tx| tx.query_one(sql!(shared "has_open_work"), [], |row| row.flag("is_open")))
            .await
    }

    async fn matching_jobs(&self, text: &str, limit: u32) -> Result<Vec<JobId>> {
        let params = (text.to_owned(), limit);
        self.query(sql!("matching_jobs"), params, |row| row.id("id")).await
    }

    async fn snapshot(&self, id: JobId) -> Result<Option<JobSnapshot>> {
        self.query_opt(sql!("snapshot"), [id.to_string()], |row| rows::snapshot(row)).await
    }

    async fn redrive_chain(&self, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
        let params = [root.to_string()];
        self.query(sql!(shared "redrive_chain"), params, |row| rows::chained_job(row)).await
    }
}

fn submit(tx: &Transaction<'_>, job: &NewJob, columns: &JobColumns) -> Result<Submitted> {
    // A repeated request gives the same job, even if its parents would be refused now.
    if let Some(submitted) = existing(tx, job, columns)? {
        return Ok(submitted);
    }
    let admission = dependencies::admit(tx, &job.request)?;
    if !insert(tx, columns, admission.waits())? {
        return Err(StoreError::Unreadable(format!("job {}", job.id)));
    }
    dependencies::link(tx, job.id, &admission)?;
    Ok(Submitted::New(job.id))
}

/// Inserts a job with its plan, which is still to be made or complete, unless its id or idempotency key exists.
pub(super) fn insert(tx: &Transaction<'_>, job: &JobColumns, waits: i64) -> Result<bool> {
    let id = job.id.to_string();
    let inserted = tx.query_opt(
        sql!("insert_job"),
        params![
            id,
            job.root.to_string(),
            job.redrive,
            job.job_type,
            job.submitter,
            job.idempotency_key,
            job.request,
            job.identity,
            job.definition,
            job.definition_hash,
            job.failures,
            job.priority,
            job.connection,
            job.handler,
            job.lease,
            job.timeout,
            waits,
            job.on_failed,
            job.rules,
            job.merge,
            job.summary,
            job.plan.open_segments,
            job.plan.chunks_total(),
            job.plan.items_total,
        ],
        |_| Ok(()),
    )?;
    if inserted.is_none() {
        return Ok(false);
    }
    tx.execute(sql!("default_throughput"), params![job.job_type, job.concurrency, job.rate])?;
    let PlanColumns { segments, status_of_segments, chunks, segment_of_chunks, .. } = &job.plan;
    for (number, (state, range)) in segments.0.iter().zip(&segments.1).enumerate() {
        let number = number as i64;
        tx.execute(sql!("insert_segment"), params![id, number, state, range, status_of_segments])?;
    }
    for (number, (key_set, items)) in chunks.0.iter().zip(&chunks.1).enumerate() {
        let params = params![id, segment_of_chunks, number as i64, key_set, items];
        tx.execute(sql!("insert_chunk"), params)?;
    }
    tx.signal()?;
    Ok(true)
}

/// The job that was submitted earlier with this id or idempotency key.
fn existing(tx: &Transaction<'_>, job: &NewJob, columns: &JobColumns) -> Result<Option<Submitted>> {
    if tx.query_opt(sql!(shared "find_job"), [job.id.to_string()], |_| Ok(()))?.is_some() {
        // The same submit, repeated because its answer was lost.
        return Ok(Some(Submitted::New(job.id)));
    }
    let params = params![columns.job_type, columns.submitter, columns.idempotency_key];
    let found =
        tx.query_opt(sql!("find_by_key"), params, |row| Ok((row.id("id")?, row.text("request")?)))?;
    let Some((id, request)) = found else { return Ok(None) };
    transitions::check_same_request(&request, &job.request)?;
    Ok(Some(Submitted::Existing(id)))
}
