//! When job types are submitted by themselves.

use chrono::{DateTime, Utc};
use windlass_core::JobId;

use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::values::instant;
use crate::{Result, ScheduleRow, rows};

pub(super) async fn now(store: &SqliteStore) -> Result<DateTime<Utc>> {
    store.read(|tx| tx.query_one(sql!("now"), [], |row| row.time("now"))).await
}

pub(super) async fn put(
    store: &SqliteStore,
    job_type: &str,
    spec: &str,
    next_at: Option<DateTime<Utc>>,
) -> Result<()> {
    let params = (job_type.to_owned(), spec.to_owned(), next_at.map(instant));
    store.write(move |tx| tx.execute(sql!("put_schedule"), params)).await.map(drop)
}

pub(super) async fn list(store: &SqliteStore) -> Result<Vec<ScheduleRow>> {
    store.read(|tx| tx.query(sql!("schedules"), [], |row| rows::schedule(row))).await
}

pub(super) async fn fired(
    store: &SqliteStore,
    job_type: &str,
    from: DateTime<Utc>,
    to: Option<DateTime<Utc>>,
    fired: Option<(DateTime<Utc>, JobId)>,
) -> Result<bool> {
    let (at, job) = fired.unzip();
    let (at, job) = (at.map(instant), job.map(|job| job.to_string()));
    let params = (job_type.to_owned(), instant(from), to.map(instant), job, at);
    Ok(store.write(move |tx| tx.execute(sql!("fired"), params)).await? > 0)
}

pub(super) async fn fail(store: &SqliteStore, job_type: &str, error: &str) -> Result<()> {
    let params = (job_type.to_owned(), error.to_owned());
    store.write(move |tx| tx.execute(sql!("fail_schedule"), params)).await.map(drop)
}

pub(super) async fn pause(
    store: &SqliteStore,
    job_type: &str,
    paused: bool,
    next_at: Option<DateTime<Utc>>,
) -> Result<bool> {
    let params = (job_type.to_owned(), paused, next_at.map(instant));
    Ok(store.write(move |tx| tx.execute(sql!("pause_schedule"), params)).await? > 0)
}
