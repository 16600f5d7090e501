//! `cargo xtask nightly`: builds the binary and the example's program with optimisation, and runs it.

use crate::{cargo, needs, python};
use std::process::ExitCode;

pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    if !needs::are_met() {
        return Ok(ExitCode::from(2));
    }
    python::make();
    if !cargo::succeeds(&["build", "--release", "-p", "windlass-cli"])? {
        return Ok(ExitCode::FAILURE);
    }
    let mut command = vec!["run", "--release", "-p", "windlass-nightly", "--"];
    command.extend(arguments);
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
