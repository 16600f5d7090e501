//! Jobs, chunks and segments as people see them.

use windlass_core::{ChunkStatus, Job, JobId, JobStatus};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, given, sql};
use crate::fields::Fields;
use crate::{ChunkRow, JobFilter, JobSnapshot, Owner, Result, SegmentRow, Stats, rows, values};

pub(super) async fn job(store: &SqliteStore, id: JobId) -> Result<Option<Job>> {
    store
        .read(move |tx| {
            tx.query_opt(sql!("show_job", "job_sums"), [id.to_string()], |row| rows::job(row))
        })
        .await
}

pub(super) async fn status(store: &SqliteStore, id: JobId) -> Result<Option<JobStatus>> {
    let find = move |tx: &Transaction<'_>| {
        tx.query_opt(sql!("find_job"), [id.to_string()], |row| row.status("status"))
    };
    store.read(find).await
}

pub(super) async fn jobs(store: &SqliteStore, filter: &JobFilter) -> Result<Vec<Job>> {
    let job_type = filter.job_type.clone();
    let status = filter.status.map(|status| status.as_str());
    let before = filter.before.map(|id| id.to_string());
    let limit = values::listed(filter.limit);
    let by = filter.submitted_by.clone();
    let sql = given(sql!("list_jobs", "job_sums"), &by, "?5");
    let sql = given(&given(&sql, &job_type, "?1"), &status, "?2");
    let id = filter.id.map(|id| id.to_string());
    let sql = given(&sql, &id, "?6");
    let types = filter.job_types.as_ref().map(serde_json::to_string).transpose()?;
    let work = move |tx: &Transaction<'_>| {
        let params = params![job_type, status, before, limit, by, id, types];
        tx.query(&sql, params, |row| rows::job(row))
    };
    store.read(work).await
}

pub(super) async fn owners(store: &SqliteStore, jobs: &[JobId]) -> Result<Vec<Owner>> {
    let jobs = serde_json::to_string(jobs)?;
    store.read(move |tx| tx.query(sql!("owners"), [jobs], |row| rows::owner(row))).await
}

pub(super) async fn open_jobs(
    store: &SqliteStore,
    submitted_by: &str,
    limit: u32,
) -> Result<Vec<JobId>> {
    let params = (submitted_by.to_owned(), limit);
    store.read(move |tx| tx.query(sql!("open_jobs"), params, |row| row.id("id"))).await
}

pub(super) async fn stats(store: &SqliteStore) -> Result<Stats> {
    let work = |tx: &Transaction<'_>| {
        let depths = tx.query(sql!("depths"), [], |row| rows::depth(row))?;
        Ok(Stats { depths, losses: tx.query(sql!("losses"), [], |row| rows::losses(row))? })
    };
    store.read(work).await
}

pub(super) async fn snapshot(store: &SqliteStore, id: JobId) -> Result<Option<JobSnapshot>> {
    store
        .read(move |tx| tx.query_opt(sql!("snapshot"), [id.to_string()], |row| rows::snapshot(row)))
        .await
}

pub(super) async fn chunks(
    store: &SqliteStore,
    job: JobId,
    status: Option<ChunkStatus>,
    after: Option<i64>,
    limit: u32,
) -> Result<Vec<ChunkRow>> {
    let status = status.map(|status| status.as_str());
    let work = move |tx: &Transaction<'_>| {
        let params = params![job.to_string(), status, after, limit];
        tx.query(sql!("list_chunks"), params, |row| rows::chunk(row))
    };
    store.read(work).await
}

pub(super) async fn segments(store: &SqliteStore, job: JobId) -> Result<Vec<SegmentRow>> {
    let work = move |tx: &Transaction<'_>| {
        tx.query(sql!("list_segments"), [job.to_string()], |row| rows::segment(row))
    };
    store.read(work).await
}
