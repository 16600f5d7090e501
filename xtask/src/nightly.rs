//! `cargo xtask nightly`: builds the binary and the example's program in release mode, and runs the example.

use crate::{cargo, cost, needs, python};
use std::process::ExitCode;

pub(crate) fn run(rows: &str, concurrency: Option<&str>) -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    python::TESTS.install();
    if !cargo::succeeds(&["build", "--release", "-p", "windlass-cli"])? {
        return Ok(ExitCode::FAILURE);
    }
    let mut command = vec!["run", "--release", "-p", "windlass-nightly", "--", "--rows", rows];
    command.extend(concurrency.iter().flat_map(|steps| ["--concurrency", steps]));
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the tables of examples/nightly/COST.md.
pub(crate) fn print_cost() -> anyhow::Result<ExitCode> {
    print!("{}", cost::tables()?);
    Ok(ExitCode::SUCCESS)
}
