//! Many rows as a few numbers, for drawing.

use std::time::Duration;

use windlass_core::{JobId, JobStatus};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, given, sql};
use crate::{
    ChunkBucket, ChunkRow, DurationBucket, HourlyJobs, Result, ThroughputBucket, rows, values,
};

pub(super) async fn hours(
    store: &SqliteStore,
    age: Duration,
    submitted_by: Option<&str>,
    job_types: Option<&[String]>,
) -> Result<Vec<HourlyJobs>> {
    let (age, by) = (values::millis(age), submitted_by.map(str::to_owned));
    let sql = given(sql!("hours"), &by, "?2");
    let types = job_types.map(serde_json::to_string).transpose()?;
    let statuses = serde_json::to_string(JobStatus::ALL)?;
    let work = move |tx: &Transaction<'_>| {
        tx.query(&sql, params![age, by, statuses, types], |row| rows::hour(row))
    };
    store.read(work).await
}

pub(super) async fn cells(store: &SqliteStore, job: JobId, width: i64) -> Result<Vec<ChunkBucket>> {
    let params = (job.to_string(), width);
    store.read(move |tx| tx.query(sql!("cells"), params, |row| rows::cell(row))).await
}

pub(super) async fn pace(
    store: &SqliteStore,
    job: JobId,
    stretch: Duration,
) -> Result<Vec<ThroughputBucket>> {
    let params = (job.to_string(), values::millis(stretch));
    store.read(move |tx| tx.query(sql!("pace"), params, |row| rows::pace(row))).await
}

pub(super) async fn durations(store: &SqliteStore, job: JobId) -> Result<Vec<DurationBucket>> {
    let params = (job.to_string(),);
    store.read(move |tx| tx.query(sql!("durations"), params, |row| rows::took(row))).await
}

pub(super) async fn slowest(store: &SqliteStore, job: JobId, limit: u32) -> Result<Vec<ChunkRow>> {
    let params = (job.to_string(), limit);
    store.read(move |tx| tx.query(sql!("slowest_chunks"), params, |row| rows::chunk(row))).await
}
