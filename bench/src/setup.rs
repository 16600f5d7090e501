//! Shared by all benchmarks: a server, tables, and an engine.

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
    /// Use a tenth of the rows.
    pub(crate) quick: bool,
    /// The maximum number of rows.
    pub(crate) most: Option<u64>,
}

impl Bench {
    /// Starts a server with `fsync = on` and enough memory for the tables.
    pub(crate) fn start(sizes: Sizes) -> Bench {
        Bench::with(sizes, &[])
    }

    /// Starts a second server that counts statements and the time to plan and run them, which costs some of its time.
    pub(crate) fn counting(&self) -> Bench {
        let settings = [
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.track_planning", "on"),
        ];
        Bench::with(self.sizes, &settings)
    }

    /// Starts a second server that logs every statement with its virtual transaction id.
    pub(crate) fn logging(&self) -> Bench {
        let log = [
            ("logging_collector", "on"),
            ("log_statement", "all"),
            ("log_line_prefix", "%v "),
            // The job's definition, a parameter of the submit, contains the step's statement.
            ("log_parameter_max_length", "0"),
            ("log_rotation_size", "0"),
        ];
        Bench::with(self.sizes, &log)
    }

    /// Starts a second server for many processes, which counts statements and logs the slow ones.
    pub(crate) fn growing(&self) -> Bench {
        let settings = [
            ("shared_preload_libraries", "pg_stat_statements"),
            ("pg_stat_statements.track_planning", "on"),
            ("max_connections", "1500"),
            ("logging_collector", "on"),
            ("log_rotation_size", "0"),
            ("log_line_prefix", "%p "),
            ("log_min_duration_statement", "1ms"),
        ];
        Bench::with(self.sizes, &settings)
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

    /// The number of rows to use: a tenth in a quick run, and at most the limit of the command line.
    pub(crate) fn rows(&self, rows: u64) -> u64 {
        let rows = if self.sizes.quick { rows / 10 } else { rows };
        self.sizes.most.map_or(rows, |most| rows.min(most))
    }

    /// A new database.
    pub(crate) async fn database(&self) -> Database {
        self.server.database().await
    }
}

/// Creates the table `accounts`, vacuumed and flushed, so that every run begins from the same
/// state.
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

/// Vacuums and flushes, so that the server has no background work left.
pub(crate) async fn settle(database: &Database) {
    database.run("VACUUM (ANALYZE, FREEZE)").await;
    database.run("CHECKPOINT").await;
}

/// A job type that updates all of `accounts`, with the default chunk size.
pub(crate) const RAISE: &str = "[jobs.RAISE]\nsource.connection = \"app\"\n\
    source.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = amount + 1 WHERE {chunk}\"\n";

/// A configuration with these databases and job types.
fn config(store: &str, data: &str, jobs: &str) -> String {
    format!("[store]\nurl = \"{store}\"\n[connections.app]\nurl = \"{data}\"\n{jobs}")
}

/// An engine builder for these job types, with the store in the data's database.
pub(crate) fn builder(database: &Database, jobs: &str) -> Result<Builder> {
    Ok(Engine::builder(Config::parse(&config(database.url(), database.url(), jobs), |_| None)?))
}

/// The `windlass` binary that was built with the bench.
pub(crate) fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("windlass");
    anyhow::ensure!(path.exists(), "{} is missing; `cargo xtask bench` builds it", path.display());
    Ok(path)
}

/// A folder with a configuration for the binary.
pub(crate) fn folder(store: &Database, data: &Database, jobs: &str) -> Result<TempDir> {
    folder_at(store.url(), data.url(), jobs)
}

/// The same for any store and data.
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
    /// Starts a worker with `slots` slots.
    pub(crate) fn start(engine: &Engine, slots: usize) -> Running {
        let options = Options::default().with_slots(slots);
        let (worker, handle) = Worker::new(engine.clone(), options);
        Running { handle, task: tokio::spawn(worker.run()) }
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.handle.shutdown();
        self.task.await?;
        Ok(())
    }
}

/// Runs a job in this process. Returns the time from submit to its end.
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

/// Waits until a job is completed. Any other final status is an error.
pub(crate) async fn wait_completed(engine: &Engine, id: JobId) -> Result<()> {
    let mut changes = engine.store().subscribe();
    loop {
        let job = engine.job(id).await?;
        match job.status {
            JobStatus::Completed => return Ok(()),
            status if status.is_final() => anyhow::bail!("{status}: {:?}", job.error),
            _ => engine.wait_for_progress(&mut changes, id, Duration::ZERO).await,
        }
    }
}

/// The median in seconds.
pub(crate) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
