//! Chunks that do nothing, compared with jobs that do nothing in a job queue on the same server.

use crate::graphile::Graphile;
use crate::planned;
use crate::report::Report;
use crate::setup::{Bench, Running, accounts, builder, median, settle};
use crate::statements;
use anyhow::Result;
use serde::de::IgnoredAny;
use std::time::Duration;
use windlass::Outcome;
use windlass_testkit::Database;

/// Slots and connections per process, the same as on the other side.
const SLOTS: usize = 24;
const JOBS: &str = "max_connections = 25\n\
    [jobs.NOTHING]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.handler = \"nothing\"\nstep.version = \"version\"\nchunk.items = 1\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let chunks = bench.rows(30_000);
    let graphile = Graphile::prepare()?;
    let (mut ours, mut plain, mut batched) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        ours.push(time(&bench.database().await, chunks).await?);
        plain.push(graphile.time(&bench.database().await, chunks, "plain").await?);
        batched.push(graphile.time(&bench.database().await, chunks, "batched").await?);
    }
    let ours = median(ours);
    let rate = chunks as f64 / ours;
    let detail = format!("{chunks} chunks, {SLOTS} slots");
    report.at_least("noop: chunks of one item per second", rate, 20_000.0, detail);
    let figures =
        [("noop: against graphile-worker", plain), ("noop: the same, its jobs batched", batched)];
    for (what, times) in figures {
        let theirs = median(times);
        let jobs = chunks as f64 / theirs;
        let detail = format!("{rate:.0} chunks/s, graphile-worker {jobs:.0} jobs/s");
        report.note(what, theirs / ours, detail);
    }
    let counting = bench.counting();
    let database = counting.database().await;
    database.run("CREATE EXTENSION pg_stat_statements").await;
    time(&database, chunks).await?;
    statements::costly(&database, (chunks, "chunk"), report).await
}

async fn time(database: &Database, chunks: u64) -> Result<Duration> {
    accounts(database, chunks).await;
    let engine = builder(database, JOBS)?
        .handler("nothing", |_: IgnoredAny, _| async move { Ok(Outcome::Skip) })
        .connect()
        .await?;
    let (id, _) = planned::cut(&engine, "NOTHING").await?;
    settle(database).await;
    let running = Running::start(&engine, SLOTS);
    let took = planned::worked(database, &id.to_string()).await?;
    running.stop().await?;
    Ok(took)
}
