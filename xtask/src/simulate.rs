//! `cargo xtask simulate`: runs the engine on simulated time, databases and faults.

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cargo;

/// Builds the simulation and runs it with these arguments.
pub(crate) fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    eprintln!("xtask: building the simulation");
    // Alone, without the drivers of servers. Their unused parts would cause warnings.
    let built = cargo::command(&["build", "--quiet", "--package", "windlass-sim"])
        .output()
        .context("failed to start cargo")?;
    if !built.status.success() {
        bail!("the simulation does not build:\n{}", String::from_utf8_lossy(&built.stderr));
    }
    let program = cargo::target()?.join("debug/windlass-sim");
    let status = Command::new(&program).args(args).status();
    let status = status.with_context(|| format!("failed to start {}", program.display()))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
