//! What operators, definitions and failing steps say of job types; and who works.

use std::time::Duration;

use windlass_core::JobId;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::values::millis;
use crate::{Capabilities, Control, Lease, Result, WorkerRow, rows};

pub(super) async fn hold(
    store: &SqliteStore,
    subject: &str,
    reason: &str,
    wait: Duration,
) -> Result<bool> {
    let params = (subject.to_owned(), millis(wait), reason.to_owned());
    Ok(store.write(move |tx| tx.execute(sql!("suspend"), params)).await? > 0)
}

pub(super) async fn stop(store: &SqliteStore, subject: &str, stopped: bool) -> Result<()> {
    let params = (subject.to_owned(), stopped);
    store.write(move |tx| tx.execute(sql!("stop"), params)).await.map(drop)
}

pub(super) async fn set_throughput(
    store: &SqliteStore,
    subject: &str,
    concurrency: Option<i64>,
    rate: Option<i64>,
) -> Result<()> {
    let params = (subject.to_owned(), concurrency, rate);
    store.write(move |tx| tx.execute(sql!("set_throughput"), params)).await.map(drop)
}

pub(super) async fn controls(store: &SqliteStore) -> Result<Vec<Control>> {
    store.read(|tx| tx.query(sql!("controls"), [], |row| rows::control(row))).await
}

pub(super) async fn over_limit(store: &SqliteStore) -> Result<Vec<Lease>> {
    store.read(|tx| tx.query(sql!("over_limit"), [], |row| rows::lease(row))).await
}

pub(super) async fn reserve(
    store: &SqliteStore,
    job: JobId,
    items: i64,
    most: Duration,
) -> Result<Duration> {
    let work = move |tx: &Transaction<'_>| {
        let job = job.to_string();
        let wait = tx.query_one(sql!("reserved"), [&job], |row| rows::wait(row))?;
        if wait <= most {
            tx.execute(sql!("reserve"), params![job, items])?;
        }
        Ok(wait)
    };
    store.write(work).await
}

pub(super) async fn heartbeat_worker(
    store: &SqliteStore,
    by: &Capabilities,
    slots: i64,
) -> Result<()> {
    let connections = serde_json::to_string(&by.connections)?;
    let handlers = serde_json::to_string(&by.handlers)?;
    let only = by.only.map(|id| id.to_string());
    let params = (by.worker.clone(), slots, connections, handlers, only);
    store.write(move |tx| tx.execute(sql!("heartbeat_worker"), params)).await.map(drop)
}

pub(super) async fn remove_worker(store: &SqliteStore, name: &str) -> Result<()> {
    let name = name.to_owned();
    store.write(move |tx| tx.execute(sql!("remove_worker"), [name])).await.map(drop)
}

pub(super) async fn workers(store: &SqliteStore) -> Result<Vec<WorkerRow>> {
    store.read(|tx| tx.query(sql!("workers"), [], |row| rows::worker(row))).await
}
