//! Cutting a table into chunks against counting it by the same index.

use crate::report::Report;
use crate::setup::{Bench, Running, accounts, builder, median};
use anyhow::Result;
use std::time::{Duration, Instant};
use windlass::{Engine, Request};

const JOBS: &str = "[jobs.RAISE]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = amount + 1 WHERE {chunk}\"\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(10_000_000);
    let database = bench.database().await;
    accounts(&database, rows).await;
    let engine = builder(&database, JOBS)?.connect().await?;
    let (mut counted, mut loaded) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let client = database.client().await;
        client.batch_execute("SET enable_seqscan = off").await?;
        let begun = Instant::now();
        client.query_one("SELECT count(*) FROM accounts", &[]).await?;
        counted.push(begun.elapsed());
        loaded.push(load(&engine).await?);
    }
    let (counted, loaded) = (median(counted), median(loaded));
    let detail = format!("{rows} rows: loaded in {loaded:.2} s, counted in {counted:.2} s");
    report.at_most("load: time against count(*) by the index", loaded / counted, 1.5, detail);
    Ok(())
}

/// The time from submit until every chunk is cut, with nobody working them.
async fn load(engine: &Engine) -> Result<Duration> {
    let running = Running::start(engine, 0);
    let begun = Instant::now();
    let id = engine.submit(Request::new("RAISE"), Engine::local_identity()).await?.id();
    while !engine
        .store()
        .segments(id)
        .await?
        .iter()
        .all(|row| row.status == windlass::ChunkStatus::Completed)
    {
        engine.store().changed(Duration::from_millis(20)).await;
    }
    let took = begun.elapsed();
    running.stop().await?;
    engine.cancel(id).await?;
    Ok(took)
}
