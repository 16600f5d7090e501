//! Removing what has ended long ago, in bites that hold the writer's lock for no long time.

use std::time::Duration;

use windlass_core::JobId;
use windlass_db::rusqlite::params;
use windlass_db::rusqlite::types::Value;

use super::{SqliteStore, sql};
use crate::Result;
use crate::fields::Fields;
use crate::values::{BITE, millis};

pub(super) async fn job_types(store: &SqliteStore) -> Result<Vec<String>> {
    store.read(|tx| tx.query(sql!("job_types"), [], |row| row.text("job_type"))).await
}

pub(super) async fn jobs(
    store: &SqliteStore,
    sql: &'static str,
    job_type: &str,
    age: Duration,
    limit: u32,
) -> Result<Vec<JobId>> {
    let (job_type, age) = (job_type.to_owned(), millis(age));
    store.read(move |tx| tx.query(sql, params![job_type, age, limit], |row| row.id("id"))).await
}

pub(super) async fn remove_chunks(store: &SqliteStore, job: JobId) -> Result<u64> {
    bite(store, sql!("remove_chunks"), vec![job.to_string().into(), i64::from(BITE).into()]).await
}

pub(super) async fn remove_segments(store: &SqliteStore, job: JobId) -> Result<()> {
    let job = job.to_string();
    let work = store.write(move |tx| {
        tx.execute(sql!("remove_segments"), [&job])?;
        tx.execute(sql!("close_job"), [&job])
    });
    work.await.map(drop)
}

pub(super) async fn close(store: &SqliteStore, job: JobId) -> Result<bool> {
    let closed = store.write(move |tx| tx.execute(sql!("close_job"), [job.to_string()])).await?;
    Ok(closed > 0)
}

pub(super) async fn remove(store: &SqliteStore, job: JobId) -> Result<()> {
    let job = job.to_string();
    let work = store.write(move |tx| {
        tx.execute(sql!("remove_segments"), [&job])?;
        tx.execute(sql!("remove_letters_of"), [&job])?;
        tx.execute(sql!("free_letters"), [&job])?;
        tx.execute(sql!("remove_control"), [&job])?;
        tx.execute(sql!("remove_job"), [&job])
    });
    work.await.map(drop)
}

pub(super) async fn remove_letters(
    store: &SqliteStore,
    job_type: &str,
    age: Duration,
) -> Result<u64> {
    let params = vec![job_type.to_owned().into(), millis(age).into(), i64::from(BITE).into()];
    bite(store, sql!("remove_letters"), params).await
}

/// Runs a statement that removes some, until it finds no more.
async fn bite(store: &SqliteStore, sql: &'static str, params: Vec<Value>) -> Result<u64> {
    let mut removed = 0;
    loop {
        let params = windlass_db::rusqlite::params_from_iter(params.clone());
        let now = store.write(move |tx| tx.execute(sql, params)).await? as u64;
        removed += now;
        if now < u64::from(BITE) {
            return Ok(removed);
        }
    }
}
