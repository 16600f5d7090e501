//! Settings from the environment: the path of windlass.toml, the AWS configuration, and the emergency stop.

use crate::{Error, Result};
use std::collections::BTreeMap;
use windlass_core::problem::Code;
use windlass_core::{Config, Problem};
use windlass_drivers::dynamodb::{SdkConfig, settings};

/// The valid configuration at `WINDLASS_CONFIG`, or in the current folder.
pub fn config() -> Result<Config> {
    config_with(&Secrets::new())
}

/// Values for `${VAR}`s of the configuration.
pub type Secrets = BTreeMap<String, String>;

/// The values in the secret `WINDLASS_SECRET` of Secrets Manager, a JSON object of texts. None if the variable is not
/// set.
pub async fn secrets() -> Result<Secrets> {
    let Ok(id) = std::env::var("WINDLASS_SECRET") else { return Ok(Secrets::new()) };
    let client = aws_sdk_secretsmanager::Client::new(&environment().await?);
    let found = client.get_secret_value().secret_id(&id).send().await;
    let found = found.map_err(Error::aws(format!("WINDLASS_SECRET {id}")))?;
    serde_json::from_str(found.secret_string().unwrap_or_default()).map_err(|_| {
        // The reason may contain a part of the secret.
        let detail = format!("the secret {id} must be a JSON object whose values are texts");
        Problem::field(Code::Configuration, "WINDLASS_SECRET", detail).into()
    })
}

/// [`config`], with values for variables that the environment lacks.
pub fn config_with(secrets: &Secrets) -> Result<Config> {
    let path = std::env::var("WINDLASS_CONFIG").unwrap_or_else(|_| "windlass.toml".to_owned());
    let wrong = |detail| Problem::field(Code::Configuration, path.clone(), detail);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        wrong(format!("failed to read: {error}; WINDLASS_CONFIG names the file"))
    })?;
    let value = |name: &str| std::env::var(name).ok().or_else(|| secrets.get(name).cloned());
    let config = Config::parse(&text, value)?;
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
