//! Jobs, chunks and segments as people see them.

use windlass_core::{ChunkStatus, Job, JobId, JobStatus};
use windlass_drivers::Row;

use super::{PostgresStore, params, sql, texts};
use crate::fields::Fields;
use crate::{ChunkRow, JobFilter, JobSnapshot, Owner, Result, SegmentRow, Stats, rows, values};

pub(super) async fn job(store: &PostgresStore, id: JobId) -> Result<Option<Job>> {
    let jobs = store.read(sql!("show_job", "job_sums"), params![id], rows::job).await?;
    Ok(jobs.into_iter().next())
}

pub(super) async fn status(store: &PostgresStore, id: JobId) -> Result<Option<JobStatus>> {
    let status = store.read(sql!("find_job"), params![id], |row| row.status("status")).await?;
    Ok(status.into_iter().next())
}

pub(super) async fn jobs(store: &PostgresStore, filter: &JobFilter) -> Result<Vec<Job>> {
    let job_type = filter.job_type.as_deref();
    let status = filter.status.map(|status| status.as_str());
    let by = filter.submitted_by.as_deref();
    let types = texts(filter.job_types.as_deref());
    let limit = values::listed(filter.limit);
    let params = params![job_type, status, filter.before, limit, by, filter.id, types];
    store.read(sql!("list_jobs", "job_sums"), params, rows::job).await
}

pub(super) async fn owners(store: &PostgresStore, jobs: &[JobId]) -> Result<Vec<Owner>> {
    store.read(sql!("owners"), params![jobs.to_vec()], rows::owner).await
}

pub(super) async fn open_jobs(
    store: &PostgresStore,
    submitted_by: &str,
    limit: u32,
) -> Result<Vec<JobId>> {
    let params = params![submitted_by, limit];
    store.read(sql!("open_jobs"), params, |row: &Row| row.id("id")).await
}

pub(super) async fn stats(store: &PostgresStore) -> Result<Stats> {
    let depths = store.read(sql!("depths"), &[], rows::depth).await?;
    Ok(Stats { depths, losses: store.read(sql!("losses"), &[], rows::losses).await? })
}

pub(super) async fn snapshot(store: &PostgresStore, id: JobId) -> Result<Option<JobSnapshot>> {
    let jobs = store.read(sql!("snapshot"), params![id], rows::snapshot).await?;
    Ok(jobs.into_iter().next())
}

pub(super) async fn chunks(
    store: &PostgresStore,
    job: JobId,
    status: Option<ChunkStatus>,
    after: Option<i64>,
    limit: u32,
) -> Result<Vec<ChunkRow>> {
    let status = status.map(|status| status.as_str());
    let params = params![job, status, after, limit];
    store.read(sql!("list_chunks"), params, rows::chunk).await
}

pub(super) async fn segments(store: &PostgresStore, job: JobId) -> Result<Vec<SegmentRow>> {
    store.read(sql!("list_segments"), params![job], rows::segment).await
}
