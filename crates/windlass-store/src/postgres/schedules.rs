//! When job types are submitted by themselves.

use chrono::{DateTime, Utc};
use windlass_core::JobId;
use windlass_drivers::Row;

use super::{PostgresStore, params, sql};
use crate::fields::Fields;
use crate::values::instant;
use crate::{Result, ScheduleRow, StoreError, rows};

pub(super) async fn now(store: &PostgresStore) -> Result<DateTime<Utc>> {
    let now = store.read(sql!("now"), &[], |row: &Row| row.time("now")).await?;
    now.into_iter().next().ok_or_else(|| StoreError::Unreadable("the time".to_owned()))
}

pub(super) async fn put(
    store: &PostgresStore,
    job_type: &str,
    spec: &str,
    next_at: Option<DateTime<Utc>>,
) -> Result<()> {
    store
        .single(sql!("put_schedule"), params![job_type, spec, next_at.map(instant)])
        .await
        .map(drop)
}

pub(super) async fn list(store: &PostgresStore) -> Result<Vec<ScheduleRow>> {
    store.read(sql!("schedules"), &[], rows::schedule).await
}

pub(super) async fn fired(
    store: &PostgresStore,
    job_type: &str,
    from: DateTime<Utc>,
    to: Option<DateTime<Utc>>,
    fired: Option<(DateTime<Utc>, JobId)>,
) -> Result<bool> {
    let (at, job) = fired.unzip();
    let (from, to, at) = (instant(from), to.map(instant), at.map(instant));
    let tx = store.begin().await?;
    let moved = tx.execute(sql!("fired"), params![job_type, from, to, job, at]).await?;
    tx.commit().await?;
    Ok(moved > 0)
}

pub(super) async fn fail(store: &PostgresStore, job_type: &str, error: &str) -> Result<()> {
    store.single(sql!("fail_schedule"), params![job_type, error]).await.map(drop)
}

pub(super) async fn pause(
    store: &PostgresStore,
    job_type: &str,
    paused: bool,
    next_at: Option<DateTime<Utc>>,
) -> Result<bool> {
    let tx = store.begin().await?;
    let found =
        tx.execute(sql!("pause_schedule"), params![job_type, paused, next_at.map(instant)]).await?;
    tx.commit().await?;
    Ok(found > 0)
}
