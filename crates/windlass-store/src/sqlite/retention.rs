//! Removing what has ended long ago, in bites that hold the writer's lock for no long time.

use std::time::Duration;

use windlass_core::JobId;
use windlass_drivers::rusqlite::types::Value;

use super::{SqliteStore, sql};
use crate::Result;
use crate::fields::Fields;
use crate::values::{DELETE_BATCH, millis};

pub(super) async fn job_types(store: &SqliteStore) -> Result<Vec<String>> {
    store.read(|tx| tx.query(sql!("job_types"), [], |row| row.text("job_type"))).await
}

pub(super) async fn jobs(
    store: &SqliteStore,
    sql: &'static str,
    job_type: &str,
    age: Duration,
    connections: &[String],
    limit: u32,
) -> Result<Vec<JobId>> {
    let (job_type, age) = (job_type.to_owned(), millis(age));
    let connections = serde_json::to_string(connections)?;
    let params = (job_type, age, limit, connections);
    store.read(move |tx| tx.query(sql, params, |row| row.id("id"))).await
}

pub(super) async fn remove_chunks(store: &SqliteStore, job: JobId) -> Result<u64> {
    bite(store, sql!("remove_chunks"), vec![job.to_string().into(), i64::from(DELETE_BATCH).into()])
        .await
}

pub(super) async fn remove_segments(store: &SqliteStore, job: JobId) -> Result<()> {
    all(store, job, &[sql!("remove_segments")]).await
}

pub(super) async fn close(store: &SqliteStore, job: JobId) -> Result<()> {
    all(store, job, &[sql!("close_job")]).await
}

pub(super) async fn expire(store: &SqliteStore, job: JobId, age: Duration) -> Result<bool> {
    let params = (job.to_string(), millis(age));
    Ok(store.write(move |tx| tx.execute(sql!("expire_job"), params)).await? > 0)
}

pub(super) async fn remove(store: &SqliteStore, job: JobId) -> Result<()> {
    let all_of = [
        sql!("remove_control"),
        sql!("remove_letters_of"),
        sql!("free_letters"),
        sql!("remove_links"),
        sql!("remove_parts"),
        sql!("remove_job"),
    ];
    all(store, job, &all_of).await
}

/// Runs statements on a job in one transaction.
async fn all(store: &SqliteStore, job: JobId, statements: &[&'static str]) -> Result<()> {
    let (job, statements) = (job.to_string(), statements.to_vec());
    let work = move |tx: &super::transaction::Transaction<'_>| {
        statements.iter().try_for_each(|sql| tx.execute(sql, [&job]).map(drop))
    };
    store.write(work).await
}

pub(super) async fn remove_letters(
    store: &SqliteStore,
    job_type: &str,
    age: Duration,
) -> Result<u64> {
    let params =
        vec![job_type.to_owned().into(), millis(age).into(), i64::from(DELETE_BATCH).into()];
    bite(store, sql!("remove_letters"), params).await
}

/// Runs a statement that removes some, until it finds no more.
async fn bite(store: &SqliteStore, sql: &'static str, params: Vec<Value>) -> Result<u64> {
    let mut removed = 0;
    loop {
        let params = windlass_drivers::rusqlite::params_from_iter(params.clone());
        let now = store.write(move |tx| tx.execute(sql, params)).await? as u64;
        removed += now;
        if now < u64::from(DELETE_BATCH) {
            return Ok(removed);
        }
    }
}
