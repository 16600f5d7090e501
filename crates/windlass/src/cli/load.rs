//! Reads the configuration and connects the engine.

use anyhow::{Context, Result};
use std::path::Path;
use windlass::{Config, Engine};

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
