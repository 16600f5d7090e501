//! `cargo xtask bench`: builds the bench and the binary with optimisation, and runs it.

use crate::{cargo, needs, python};
use std::process::ExitCode;

pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    if !needs::are_met() {
        return Ok(ExitCode::from(2));
    }
    // One of the figures is against moto.
    python::make();
    if !cargo::succeeds(&["build", "--release", "-p", "windlass-cli", "--all-features"])? {
        return Ok(ExitCode::FAILURE);
    }
    let mut command = vec!["run", "--release", "-p", "windlass-bench", "--"];
    command.extend(arguments);
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
