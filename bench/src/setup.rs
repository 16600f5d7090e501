//! What every figure needs: a server, tables, and an engine on them.

use anyhow::Result;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass::{Builder, Config, Engine, Handle, JobId, JobStatus, Options, Worker, WorkerStats};
use windlass_testkit::{Database, PostgresServer};

/// The server and the sizes of this run.
pub(crate) struct Bench {
    server: PostgresServer,
    sizes: Sizes,
}

/// How large the tables are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sizes {
    /// A tenth of what the figures are defined with.
    pub(crate) quick: bool,
    /// So many rows at most.
    pub(crate) most: Option<u64>,
}

impl Bench {
    /// Starts a server with fsync on and room for the tables.
    pub(crate) fn start(sizes: Sizes) -> Bench {
        Bench::with(sizes, &[])
    }

    /// Starts another server that counts statements, which costs a little of its time.
    pub(crate) fn counting(&self) -> Bench {
        Bench::with(self.sizes, &[("shared_preload_libraries", "pg_stat_statements")])
    }

    fn with(sizes: Sizes, more: &[(&str, &str)]) -> Bench {
        let settings = [
            ("shared_buffers", "2GB"),
            ("max_wal_size", "16GB"),
            ("checkpoint_timeout", "30min"),
            ("autovacuum", "off"),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().chain(more).map(owned).collect();
        let options = windlass_testkit::Options { fsync: true, settings };
        Bench { server: PostgresServer::start(options), sizes }
    }

    /// A size, or a tenth of it in a quick run, and no more than the command line says.
    pub(crate) fn rows(&self, rows: u64) -> u64 {
        let rows = if self.sizes.quick { rows / 10 } else { rows };
        self.sizes.most.map_or(rows, |most| rows.min(most))
    }

    /// A fresh database.
    pub(crate) async fn database(&self) -> Database {
        self.server.database().await
    }
}

/// Makes the table `accounts` with so many rows, vacuumed and flushed, so that every run begins
/// from the same state.
pub(crate) async fn accounts(database: &Database, rows: u64) {
    database.run("DROP TABLE IF EXISTS accounts").await;
    database
        .run(
            "CREATE TABLE accounts (id bigint PRIMARY KEY, owner text NOT NULL, amount bigint NOT NULL,
             version bigint NOT NULL DEFAULT 1)",
        )
        .await;
    database
        .run(&format!(
            "INSERT INTO accounts SELECT i, 'owner ' || i, i % 1000, 1 FROM generate_series(1, {rows}) i"
        ))
        .await;
    settle(database).await;
}

/// Vacuums and flushes what was written, with nothing left to do for the server afterwards.
pub(crate) async fn settle(database: &Database) {
    database.run("VACUUM (ANALYZE, FREEZE)").await;
    database.run("CHECKPOINT").await;
}

/// A job type that raises all of `accounts`, in chunks of the usual size.
pub(crate) const RAISE: &str = "[jobs.RAISE]\nsource.connection = \"app\"\n\
    source.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = amount + 1 WHERE {chunk}\"\n";

/// A configuration with the store and the data in these databases, and these job types.
fn config(store: &str, data: &str, jobs: &str) -> String {
    format!("[store]\nurl = \"{store}\"\n[connections.app]\nurl = \"{data}\"\n{jobs}")
}

/// An engine's builder for these job types, with the store beside the data.
pub(crate) fn builder(database: &Database, jobs: &str) -> Result<Builder> {
    Ok(Engine::builder(Config::parse(&config(database.url(), database.url(), jobs), |_| None)?))
}

/// The binary that was built with the bench.
pub(crate) fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("windlass");
    anyhow::ensure!(path.exists(), "{} is missing; `cargo xtask bench` builds it", path.display());
    Ok(path)
}

/// A folder with a configuration for the binary.
pub(crate) fn folder(store: &Database, data: &Database, jobs: &str) -> Result<TempDir> {
    folder_at(store.url(), data.url(), jobs)
}

/// The same for a store and data of any database.
pub(crate) fn folder_at(store: &str, data: &str, jobs: &str) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("windlass.toml"), config(store, data, jobs))?;
    Ok(folder)
}

/// A worker in this process.
pub(crate) struct Running {
    handle: Handle,
    task: tokio::task::JoinHandle<WorkerStats>,
}

impl Running {
    /// Starts it with so many slots.
    pub(crate) fn start(engine: &Engine, slots: usize) -> Running {
        let options = Options { slots, ..Options::default() };
        let (worker, handle) = Worker::new(engine.clone(), options);
        Running { handle, task: tokio::spawn(worker.run()) }
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.handle.shutdown();
        self.task.await?;
        Ok(())
    }
}

/// Runs a job in this process with so many slots; the time from submit to its end.
pub(crate) async fn time_job(engine: &Engine, job_type: &str, slots: usize) -> Result<Duration> {
    let running = Running::start(engine, slots);
    let begun = Instant::now();
    let request = windlass::Request::new(job_type);
    let id = engine.submit(request, Engine::local_identity()).await?.id();
    wait_completed(engine, id).await?;
    let took = begun.elapsed();
    running.stop().await?;
    Ok(took)
}

/// Waits for a job's end, which must be a good one.
pub(crate) async fn wait_completed(engine: &Engine, id: JobId) -> Result<()> {
    let mut changes = engine.store().subscribe();
    loop {
        let job = engine.job(id).await?;
        match job.status {
            JobStatus::Completed => return Ok(()),
            status if status.is_final() => anyhow::bail!("{status}: {:?}", job.error),
            _ => engine.next_look(&mut changes, id, Duration::ZERO).await,
        }
    }
}

/// The middle of some measurements.
pub(crate) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
