//! `cargo xtask bench`: builds the bench and the binary with optimisation, and runs it.

use crate::{cargo, needs};
use std::process::ExitCode;

pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    if !needs::are_met() {
        return Ok(ExitCode::from(2));
    }
    if !cargo::succeeds(&["build", "--release", "-p", "windlass"])? {
        return Ok(ExitCode::FAILURE);
    }
    let mut command = vec!["run", "--release", "-p", "windlass-bench", "--"];
    command.extend(arguments);
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
