//! Jobs that are planned before workers start, so that only the work is measured.

use crate::setup::Running;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use windlass::{Engine, JobId, Request};
use windlass_testkit::Database;

/// Submits and plans a job without working it. Returns the duration.
pub(crate) async fn cut(engine: &Engine, job_type: &str) -> Result<(JobId, Duration)> {
    let running = Running::start(engine, 0);
    let begun = Instant::now();
    let id = engine.submit(Request::new(job_type), Engine::local_identity()).await?.id();
    let mut changes = engine.store().subscribe();
    while !engine
        .store()
        .segments(id)
        .await?
        .iter()
        .all(|row| row.status == windlass::ChunkStatus::Completed)
    {
        changes.changed(Duration::from_millis(20)).await;
    }
    let took = begun.elapsed();
    running.stop().await?;
    Ok((id, took))
}

/// Waits until a job is completed. Returns the time from its first lease to its last completion. Reads only the
/// job's row: a live view would add up all chunks.
pub(crate) async fn worked(store: &Database, id: &str) -> Result<Duration> {
    let client = store.client().await;
    client.batch_execute("SET pg_stat_statements.track = 'none'").await?;
    let look = format!("SELECT status FROM windlass_jobs WHERE id = '{id}'");
    let status = loop {
        let status: String = client.query_one(&look, &[]).await?.get(0);
        if status != "QUEUED" && status != "PROCESSING" {
            break status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    ensure!(status == "COMPLETED", "{status}");
    let span = format!(
        "SELECT extract(epoch FROM max(finished_at) - min(started_at))::float8
         FROM windlass_chunks WHERE job_id = '{id}'"
    );
    Ok(Duration::from_secs_f64(client.query_one(&span, &[]).await?.get(0)))
}
