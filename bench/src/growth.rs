//! How the cost of a chunk grows: with the slots of a cluster, with the chunks of a job, and with the finished jobs in
//! the store.

mod cost;

use crate::dashboard::seed::{SeededJobs, Store};
use crate::planned;
use crate::report::Report;
use crate::setup::{Bench, Running, accounts, builder, folder, settle};
use crate::work::SLEEP;
use anyhow::{Result, ensure};
use cost::{Cost, Meter};
use serde::de::IgnoredAny;
use std::process::{Child, Command, Stdio};
use windlass::{Engine, Outcome};
use windlass_testkit::Database;

/// Processes and slots of each.
const CLUSTERS: [(u64, u64); 4] = [(1, 10), (5, 20), (25, 20), (50, 20)];
/// Chunks per slot in a cluster, which each sleep.
const ROUNDS: u64 = 8;
/// Chunks of a job.
const CHUNKS: [u64; 4] = [1000, 10_000, 100_000, 1_000_000];
/// Slots while the chunks of a job or the finished jobs grow.
const SLOTS: usize = 24;
/// Chunks of the job that runs beside many finished jobs, and how many of those there are.
const BESIDE: u64 = 10_000;
const FINISHED: [u64; 3] = [0, 10_000, 100_000];

/// The cost at the end of a curve may be this multiple of the cost at its beginning.
const FLAT: f64 = 1.25;
/// The goal for the 99th percentile of the statement that leases chunks, in milliseconds.
const LEASE: f64 = 2.0;

/// `max_connections` of a process is small, so that 50 processes do not need more than the server has.
const JOBS: &str = "max_connections = 4\n\
    [jobs.NOTHING]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.handler = \"nothing\"\nstep.version = \"version\"\nchunk.items = 1\n\
    [jobs.SLEEP]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.handler = \"sleep\"\nstep.version = \"version\"\nchunk.items = 1\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let bench = bench.growing();
    let mut curve = Curve::default();
    for (processes, slots) in CLUSTERS {
        let cost = with_processes(&bench, processes, slots).await?;
        curve.add(report, &format!("{} slots", processes * slots), &cost);
    }
    let mut curve = Curve::default();
    let mut sizes = CHUNKS.map(|chunks| bench.rows(chunks)).to_vec();
    sizes.dedup();
    for chunks in sizes {
        let database = bench.database().await;
        let (_, cost) = one_job(&database, chunks).await?;
        curve.add(report, &format!("{chunks} chunks of a job"), &cost);
        let size = "SELECT sum(pg_total_relation_size(oid))::float8 FROM pg_class
                    WHERE relkind = 'r' AND relname LIKE 'windlass%'";
        let bytes = database.one::<f64>(size).await / chunks as f64;
        let detail = "store and ledger, after the job".to_owned();
        report.note(&format!("growth: {chunks} chunks of a job, bytes each"), bytes, detail);
    }
    let mut curve = Curve::default();
    for finished in FINISHED {
        let database = bench.database().await;
        let (id, _) = one_job(&database, 100).await?;
        let store = Store::Postgres(database.clone());
        if finished > 0 {
            SeededJobs::finished(&store, &id, finished).await?;
        }
        let (_, cost) = one_job(&database, bench.rows(BESIDE)).await?;
        curve.add(report, &format!("{finished} finished jobs"), &cost);
    }
    Ok(())
}

/// The points of one curve.
#[derive(Default)]
struct Curve {
    first: Option<f64>,
}

impl Curve {
    /// Prints a point: the cost of a chunk against the first point, and the leases.
    fn add(&mut self, report: &mut Report, what: &str, cost: &Cost) {
        let first = *self.first.get_or_insert(cost.cpu);
        let ratio = cost.cpu / first;
        let bar = "#".repeat((ratio * 10.0).clamp(1.0, 60.0) as usize);
        let Cost { cpu, elapsed, rate, wal, .. } = cost;
        let detail = format!(
            "{cpu:.2} ms of the server's CPU, {elapsed:.2} ms of statements, {wal:.0} bytes of WAL, {rate:.0} chunks/s {bar}"
        );
        report.at_most(&format!("growth: {what}, a chunk"), ratio, FLAT, detail);
        let detail = format!(
            "ms; {} leases of {:.0} chunks, mean {:.2} ms",
            cost.leases, cost.each, cost.mean
        );
        report.at_most(&format!("growth: {what}, lease p99"), cost.p99, LEASE, detail);
    }
}

/// An engine that plans both jobs and works those that do nothing.
async fn engine(database: &Database) -> Result<Engine> {
    let nothing = |_: IgnoredAny, _| async move { Ok(Outcome::Skip) };
    let builder = builder(database, JOBS)?.handler("nothing", nothing).handler("sleep", nothing);
    Ok(builder.connect().await?)
}

/// The cost of a chunk of a job whose chunks do nothing, in this process. The table is made anew.
async fn one_job(database: &Database, chunks: u64) -> Result<(String, Cost)> {
    accounts(database, chunks).await;
    let engine = engine(database).await?;
    let (id, _) = planned::cut(&engine, "NOTHING").await?;
    settle(database).await;
    let meter = Meter::start(database).await?;
    let running = Running::start(&engine, SLOTS);
    let took = planned::worked(database, &id.to_string()).await?;
    running.stop().await?;
    Ok((id.to_string(), meter.read(chunks, took).await?))
}

/// The cost of a chunk that sleeps, on a cluster of processes.
async fn with_processes(bench: &Bench, processes: u64, slots: u64) -> Result<Cost> {
    let chunks = processes * slots * ROUNDS;
    let database = bench.database().await;
    accounts(&database, chunks).await;
    let engine = engine(&database).await?;
    let (id, _) = planned::cut(&engine, "SLEEP").await?;
    settle(&database).await;
    let folder = folder(&database, &database, JOBS)?;
    let meter = Meter::start(&database).await?;
    let spawn = |_| {
        let mut worker = Command::new(std::env::current_exe()?);
        worker.args(["--work", "--slots", &slots.to_string()]).current_dir(folder.path());
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let mut workers = Workers((0..processes).map(spawn).collect::<std::io::Result<Vec<Child>>>()?);
    let took = planned::worked(&database, &id.to_string()).await?;
    let shortest = SLEEP * u32::try_from(ROUNDS)?;
    ensure!(took >= shortest, "{chunks} chunks took {took:?}, less than {shortest:?}");
    workers.end()?;
    meter.read(chunks, took).await
}

/// Processes that must not outlive the benchmark.
struct Workers(Vec<Child>);

impl Workers {
    fn end(&mut self) -> Result<()> {
        for mut worker in self.0.drain(..) {
            ensure!(worker.try_wait()?.is_none(), "a worker ended before the job");
            worker.kill()?;
            worker.wait()?;
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
