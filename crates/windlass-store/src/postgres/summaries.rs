//! Many rows as a few numbers, for drawing.

use std::time::Duration;

use windlass_core::{JobId, JobStatus};
use windlass_drivers::Param;

use super::{PostgresStore, params, sql, texts};
use crate::{
    ChunkBucket, ChunkRow, DurationBucket, HourlyJobs, Result, ThroughputBucket, rows, values,
};

pub(super) async fn hours(
    store: &PostgresStore,
    age: Duration,
    submitted_by: Option<&str>,
    job_types: Option<&[String]>,
) -> Result<Vec<HourlyJobs>> {
    let statuses = Param::texts(JobStatus::ALL.iter().map(|status| status.as_str()));
    let types = texts(job_types);
    let params = [values::millis(age).into(), submitted_by.into(), statuses, types];
    store.read(sql!("hours"), &params, rows::hour).await
}

pub(super) async fn cells(
    store: &PostgresStore,
    job: JobId,
    width: i64,
) -> Result<Vec<ChunkBucket>> {
    store.read(sql!("cells"), params![job, width], rows::cell).await
}

pub(super) async fn pace(
    store: &PostgresStore,
    job: JobId,
    stretch: Duration,
) -> Result<Vec<ThroughputBucket>> {
    store.read(sql!("pace"), params![job, values::millis(stretch)], rows::pace).await
}

pub(super) async fn durations(store: &PostgresStore, job: JobId) -> Result<Vec<DurationBucket>> {
    store.read(sql!("durations"), params![job], rows::took).await
}

pub(super) async fn slowest(
    store: &PostgresStore,
    job: JobId,
    limit: u32,
) -> Result<Vec<ChunkRow>> {
    store.read(sql!("slowest_chunks"), params![job, i64::from(limit)], rows::chunk).await
}
