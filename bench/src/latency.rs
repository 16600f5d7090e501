//! The time from submit to the first commit of a small job, on an idle `windlass worker`.

use crate::report::Report;
use crate::setup::{Bench, accounts, binary, builder, folder, wait_completed};
use crate::transactions;
use anyhow::Result;
use rand::Rng;
use std::time::{Duration, SystemTime};
use windlass::{Engine, JobId, Request};
use windlass_testkit::{Database, Windlass};

/// Each row stores its write time, from the same clock as the submit time.
pub(crate) const JOBS: &str = "[jobs.TOUCH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = (extract(epoch FROM clock_timestamp()) * 1e6)::bigint WHERE {chunk}\"\n";
pub(crate) const SUBMITS: usize = 60;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let database = bench.database().await;
    accounts(&database, 10).await;
    let engine = builder(&database, JOBS)?.connect().await?;
    let folder = folder(&database, &database, JOBS)?;
    let worker = Windlass::new(folder.path()).binary(binary()?).spawn(["worker"]);
    let mut times = Times::default();
    for round in 0..SUBMITS + 5 {
        let took = first_write(&database, &engine, || submit(&engine)).await?;
        // The worker is still starting during the first few.
        if round >= 5 {
            times.0.push(took);
        }
    }
    drop(worker);
    report.at_most("latency: submit to first write, median ms", times.at(0.5), 5.0, times.said());
    let transactions = transactions::count(bench).await?;
    let what = "latency: transactions until the first write";
    report.at_most(what, transactions, 10.0, "the median, by the server's log".to_owned());
    Ok(())
}

/// Submits through the library.
pub(crate) async fn submit(engine: &Engine) -> Result<JobId> {
    Ok(engine.submit(Request::new("TOUCH"), Engine::local_identity()).await?.id())
}

/// The time from a submit to the first write of its job.
pub(crate) async fn first_write<F: Future<Output = Result<JobId>>>(
    database: &Database,
    engine: &Engine,
    submit: impl FnOnce() -> F,
) -> Result<Duration> {
    // Random pauses, so that submits do not synchronise with a poll.
    let pause = rand::rng().random_range(100..400);
    tokio::time::sleep(Duration::from_millis(pause)).await;
    let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as i64;
    wait_completed(engine, submit().await?).await?;
    let written: i64 = database.one("SELECT min(amount) FROM accounts").await;
    Ok(Duration::from_micros(u64::try_from(written - begun)?))
}

/// A set of measurements.
#[derive(Default)]
pub(crate) struct Times(pub(crate) Vec<Duration>);

impl Times {
    /// A percentile in milliseconds.
    pub(crate) fn at(&mut self, share: f64) -> f64 {
        self.0.sort();
        self.0[(self.0.len() as f64 * share) as usize].as_secs_f64() * 1000.0
    }

    /// Median and 95th percentile as text.
    pub(crate) fn said(&mut self) -> String {
        let (p50, p95) = (self.at(0.5), self.at(0.95));
        format!("p50 {p50:.1} ms, p95 {p95:.1} ms over {} submits", self.0.len())
    }
}
