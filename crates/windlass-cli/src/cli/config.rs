//! Reads the configuration and connects the engine.

use super::demo::classify;
use super::print;
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::path::Path;
use windlass::{Config, Engine};

/// The flag of every command that runs jobs.
#[derive(clap::Args)]
pub(super) struct Restore {
    /// Continue with a store that was restored from an older backup
    #[arg(long)]
    after_restore: bool,
}

impl Restore {
    /// Refuses a store that is older than the ledgers, or adopts the epochs of the ledgers on request.
    pub(super) async fn check(&self, engine: &Engine) -> Result<()> {
        if !self.after_restore {
            return Ok(engine.check_restored().await?);
        }
        let done = engine.continue_after_restore().await?;
        eprintln!(
            "continuing after a restore: {} raised to the epochs of the ledger",
            print::count(done.raised as i64, "chunk")
        );
        for (connection, job, rows) in &done.unknown {
            eprintln!(
                "  {connection}: job {job} has {} and is unknown to the store",
                print::count(*rows as i64, "ledger row")
            );
        }
        for (connection, job, rows) in &done.replanned {
            eprintln!(
                "  {connection}: job {job} was planned further after the backup and is cancelled; {} cannot be assigned. \
                 Submit again what is missing",
                print::count(*rows as i64, "ledger row")
            );
        }
        for (connection, error) in &done.unreachable {
            eprintln!("  {connection}: could not be reached and was not changed: {error}");
        }
        eprintln!(
            "  jobs submitted after the backup are not submitted again automatically; schedules and outbox \
             rows of that time may be submitted again as new jobs"
        );
        Ok(())
    }
}

/// Reads and parses the configuration file.
pub(super) fn config(path: &Path) -> Result<Config> {
    if !path.exists() {
        bail!("{} does not exist; `windlass init` writes one", path.display());
    }
    Config::from_path(path).with_context(|| path.display().to_string())
}

/// Connects the engine of a configuration file.
pub(super) async fn engine(path: &Path) -> Result<Engine> {
    connect(config(path)?).await
}

/// Connects the engine of a configuration. [`close`] gives back what it reserves.
pub(super) async fn connect(config: Config) -> Result<Engine> {
    let builder = Engine::builder(config.clone());
    let engine = classify::register(&config, builder).connect().await?;
    CONNECTED.lock().push(engine.clone());
    Ok(engine)
}

/// The engines of this process.
static CONNECTED: Mutex<Vec<Engine>> = Mutex::new(Vec::new());

/// Closes the engines of this process.
pub(super) async fn close() {
    let connected = std::mem::take(&mut *CONNECTED.lock());
    for engine in connected {
        engine.close().await;
    }
}
