//! Jobs of one item each, from submit to completion, while they are submitted.

use crate::report::Report;
use crate::setup::{Bench, Running, builder, median};
use crate::statements;
use anyhow::Result;
use serde::de::IgnoredAny;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use windlass::{Engine, Outcome, Request};
use windlass_testkit::Database;

/// Slots and connections, the same as in `noop`.
const SLOTS: usize = 24;
/// Submits at once, the same as in `submit`.
const SUBMITTERS: usize = 64;
const JOBS: &str = "max_connections = 25\n\
    [jobs.NOTHING]\nsource = { connection = \"app\", items = true, key = [\"id\"] }\n\
    step.handler = \"nothing\"\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let jobs = bench.rows(10_000);
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(time(&bench.database().await, jobs).await?);
    }
    let rate = jobs as f64 / median(times);
    let detail = format!("{jobs} jobs, {SLOTS} slots, {SUBMITTERS} submitters");
    report.at_least("tiny: jobs of one item per second", rate, 10_000.0, detail);
    let counting = bench.counting();
    let database = counting.database().await;
    database.run("CREATE EXTENSION pg_stat_statements").await;
    time(&database, jobs).await?;
    statements::costly(&database, (jobs, "job"), report).await
}

/// The time from the first submit to the last completion.
async fn time(database: &Database, jobs: u64) -> Result<Duration> {
    let engine = builder(database, JOBS)?
        .handler("nothing", |_: IgnoredAny, _| async move { Ok(Outcome::Skip) })
        .connect()
        .await?;
    let running = Running::start(&engine, SLOTS);
    let begun = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let mut submitters = JoinSet::new();
    for _ in 0..SUBMITTERS {
        submitters.spawn(submit_next(engine.clone(), next.clone(), jobs));
    }
    while let Some(submitted) = submitters.join_next().await {
        submitted??;
    }
    let client = database.client().await;
    let open = "SELECT count(*) FROM windlass_jobs WHERE status IN ('QUEUED', 'PROCESSING')";
    while client.query_one(open, &[]).await?.get::<_, i64>(0) > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let took = begun.elapsed();
    running.stop().await?;
    let completed = "SELECT count(*) FROM windlass_jobs WHERE status = 'COMPLETED'";
    let completed: i64 = client.query_one(completed, &[]).await?.get(0);
    anyhow::ensure!(completed == i64::try_from(jobs)?, "{completed} of {jobs} jobs completed");
    Ok(took)
}

/// Submits jobs until there are enough.
async fn submit_next(engine: Engine, next: Arc<AtomicU64>, jobs: u64) -> Result<()> {
    loop {
        let id = next.fetch_add(1, Ordering::Relaxed);
        if id >= jobs {
            return Ok(());
        }
        let request = Request::new("NOTHING").with_items([serde_json::json!({ "id": id })]);
        engine.submit(request, Engine::local_identity()).await?;
    }
}
