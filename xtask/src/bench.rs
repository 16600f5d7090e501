//! `cargo xtask bench`: builds the binary and the benchmarks in release mode, and runs them.

use crate::{cargo, needs, python};
use std::process::ExitCode;

pub(crate) fn run(names: &[String], quick: bool, rows: Option<u64>) -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    // One of the benchmarks uses moto.
    python::TESTS.install();
    if !cargo::succeeds(&["build", "--release", "-p", "windlass-cli", "--all-features"])? {
        return Ok(ExitCode::FAILURE);
    }
    let rows = rows.map(|rows| format!("--rows={rows}"));
    let mut command = vec!["run", "--release", "-p", "windlass-bench", "--"];
    command.extend(names.iter().map(String::as_str));
    command.extend(quick.then_some("--quick"));
    command.extend(rows.as_deref());
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
