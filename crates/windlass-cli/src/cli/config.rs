//! Reads the configuration and connects the engine.

use anyhow::{Context, Result};
use std::path::Path;
use windlass::{Config, Engine};

/// What every command that works takes.
#[derive(clap::Args)]
pub(super) struct Restore {
    /// Continue although the store was restored to an older state
    #[arg(long)]
    after_restore: bool,
}

impl Restore {
    /// Refuses a store that is older than the ledgers, or makes it continue where that is asked for.
    pub(super) async fn check(&self, engine: &Engine) -> Result<()> {
        if !self.after_restore {
            return Ok(engine.check_restored().await?);
        }
        let done = engine.continue_after_restore().await?;
        eprintln!(
            "continuing after a restore: {} chunks were raised to their ledger's epochs",
            done.raised
        );
        for (connection, job, rows) in &done.unknown {
            eprintln!(
                "  {connection}: job {job} has {rows} ledger rows and is unknown to the store"
            );
        }
        for (connection, error) in &done.unreachable {
            eprintln!("  {connection}: not reached, and not continued: {error}");
        }
        eprintln!(
            "  jobs that were submitted after the backup are not done again by themselves; schedules and \
             outbox rows of that time may be submitted again as new jobs"
        );
        Ok(())
    }
}

/// The configuration file, read and understood.
pub(super) fn config(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("{} cannot be read; `windlass init` writes one", path.display())
    })?;
    let config = Config::parse(&text, |name| std::env::var(name).ok());
    config.with_context(|| path.display().to_string())
}

/// The engine of a configuration file.
pub(super) async fn engine(path: &Path) -> Result<Engine> {
    let config = config(path)?;
    Ok(Engine::builder(config).connect().await?)
}
