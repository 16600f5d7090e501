//! Removing what has ended long ago, in bites that hold no lock for long.

use std::time::Duration;

use windlass_core::JobId;
use windlass_drivers::{Param, Row};

use super::{PostgresStore, params, sql};
use crate::Result;
use crate::fields::Fields;
use crate::values::{DELETE_BATCH, millis};

pub(super) async fn job_types(store: &PostgresStore) -> Result<Vec<String>> {
    store.read(sql!("job_types"), &[], |row: &Row| row.text("job_type")).await
}

pub(super) async fn jobs(
    store: &PostgresStore,
    sql: &str,
    job_type: &str,
    age: Duration,
    connections: &[String],
    limit: u32,
) -> Result<Vec<JobId>> {
    let params = params![job_type, millis(age), limit, connections];
    store.read(sql, params, |row: &Row| row.id("id")).await
}

pub(super) async fn remove_chunks(store: &PostgresStore, job: JobId) -> Result<u64> {
    bite(store, sql!("remove_chunks"), params![job, DELETE_BATCH]).await
}

pub(super) async fn remove_segments(store: &PostgresStore, job: JobId) -> Result<()> {
    under_lock(store, job, &[sql!("remove_segments")]).await
}

pub(super) async fn close(store: &PostgresStore, job: JobId) -> Result<()> {
    under_lock(store, job, &[sql!("close_job")]).await
}

pub(super) async fn expire(store: &PostgresStore, job: JobId, age: Duration) -> Result<bool> {
    let tx = store.begin().await?;
    // Locked by a statement of its own, so that the next one sees what happened before it.
    tx.execute(sql!("lock_job"), params![job]).await?;
    let closed = tx.execute(sql!("expire_job"), params![job, millis(age)]).await?;
    tx.commit().await?;
    Ok(closed > 0)
}

pub(super) async fn remove(store: &PostgresStore, job: JobId) -> Result<()> {
    store.single(sql!("remove_control"), params![job.to_string()]).await?;
    let rest = [
        sql!("remove_letters_of"),
        sql!("free_letters"),
        sql!("remove_links"),
        sql!("remove_parts"),
        sql!("remove_job"),
    ];
    under_lock(store, job, &rest).await
}

/// Runs statements on a job in one transaction that locks it first.
async fn under_lock(store: &PostgresStore, job: JobId, statements: &[&str]) -> Result<()> {
    let tx = store.begin().await?;
    tx.execute(sql!("lock_job"), params![job]).await?;
    for sql in statements {
        tx.execute(sql, params![job]).await?;
    }
    tx.commit().await?;
    Ok(())
}

pub(super) async fn remove_letters(
    store: &PostgresStore,
    job_type: &str,
    age: Duration,
) -> Result<u64> {
    bite(store, sql!("remove_letters"), params![job_type, millis(age), DELETE_BATCH]).await
}

/// Runs a statement that removes some, until it finds no more.
async fn bite(store: &PostgresStore, sql: &str, params: &[Param<'_>]) -> Result<u64> {
    let mut removed = 0;
    loop {
        let tx = store.begin().await?;
        let now = tx.execute(sql, params).await?;
        tx.commit().await?;
        removed += now;
        if now < u64::from(DELETE_BATCH) {
            return Ok(removed);
        }
    }
}
