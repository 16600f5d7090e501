//! Settings from the environment: the path of windlass.toml, the AWS configuration, and the emergency stop.

use crate::Result;
use windlass_core::problem::Code;
use windlass_core::{Config, Problem};
use windlass_drivers::dynamodb::{SdkConfig, settings};

/// The valid configuration at `WINDLASS_CONFIG`, or in the current folder.
pub fn config() -> Result<Config> {
    let path = std::env::var("WINDLASS_CONFIG").unwrap_or_else(|_| "windlass.toml".to_owned());
    let wrong = |detail| Problem::field(Code::Configuration, path.clone(), detail);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        wrong(format!("failed to read: {error}; WINDLASS_CONFIG names the file"))
    })?;
    let config = Config::parse(&text, |name| std::env::var(name).ok())?;
    match config.problems().into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(config),
    }
}

/// AWS's own configuration: variables, profiles, or the function's role.
pub async fn environment() -> Result<SdkConfig> {
    settings("dynamodb://").await.map_err(crate::Error::aws("AWS's environment"))
}

/// Whether new work may be enqueued. `PROCESSING_ENABLED=false` is the emergency stop.
pub fn processing_enabled() -> bool {
    let is_off = |name: &str| {
        let said = std::env::var(name).unwrap_or_default();
        matches!(said.trim().to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off")
    };
    !is_off("PROCESSING_ENABLED") && !is_off("WINDLASS_PROCESSING_ENABLED")
}
