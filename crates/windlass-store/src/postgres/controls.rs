//! What operators, definitions and failing steps say of job types; and who works.

use std::time::Duration;

use windlass_core::JobId;

use super::{PostgresStore, params, sql};
use crate::values::millis;
use crate::{Capabilities, Control, Lease, Result, WorkerRow, rows};

pub(super) async fn hold(
    store: &PostgresStore,
    subject: &str,
    reason: &str,
    wait: Duration,
) -> Result<bool> {
    let tx = store.begin().await?;
    let held = tx.execute(sql!("suspend"), params![subject, millis(wait), reason]).await?;
    tx.commit().await?;
    Ok(held > 0)
}

pub(super) async fn stop(store: &PostgresStore, subject: &str, stopped: bool) -> Result<()> {
    store.single(sql!("stop"), params![subject, stopped]).await.map(drop)
}

pub(super) async fn set_throughput(
    store: &PostgresStore,
    subject: &str,
    concurrency: Option<i64>,
    rate: Option<i64>,
) -> Result<()> {
    store.single(sql!("set_throughput"), params![subject, concurrency, rate]).await.map(drop)
}

pub(super) async fn controls(store: &PostgresStore) -> Result<Vec<Control>> {
    store.read(sql!("controls"), &[], rows::control).await
}

pub(super) async fn over_limit(store: &PostgresStore) -> Result<Vec<Lease>> {
    store.read(sql!("over_limit"), &[], rows::lease).await
}

pub(super) async fn reserve(
    store: &PostgresStore,
    job: JobId,
    items: i64,
    most: Duration,
) -> Result<Duration> {
    let params = params![job, items, millis(most)];
    let rows = store.single(sql!("reserve"), params).await?;
    rows.first().map_or(Ok(Duration::ZERO), rows::wait)
}

pub(super) async fn heartbeat_worker(
    store: &PostgresStore,
    by: &Capabilities,
    slots: i64,
) -> Result<()> {
    let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
    let params = params![&by.worker, slots, connections, handlers, by.only];
    store.single(sql!("heartbeat_worker"), params).await.map(drop)
}

pub(super) async fn remove_worker(store: &PostgresStore, name: &str) -> Result<()> {
    store.single(sql!("remove_worker"), params![name]).await.map(drop)
}

pub(super) async fn workers(store: &PostgresStore) -> Result<Vec<WorkerRow>> {
    store.read(sql!("workers"), &[], rows::worker).await
}
