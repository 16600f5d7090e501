//! `cargo xtask bench`: builds the binary and the benchmarks in release mode, and runs them.

use crate::{BenchArgs, cargo, needs, python};
use std::process::ExitCode;

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    // One of the benchmarks uses moto.
    python::TESTS.install();
    if !cargo::succeeds(&["build", "--release", "-p", "windlass-cli", "--all-features"])? {
        return Ok(ExitCode::FAILURE);
    }
    let rows = args.rows.map(|rows| format!("--rows={rows}"));
    let mut command = vec!["run", "--release", "-p", "windlass-bench", "--"];
    command.extend(args.names.iter().map(String::as_str));
    let flags = [("--quick", args.quick), ("--headline", args.headline), ("--write", args.write)];
    command.extend(flags.iter().filter(|(_, on)| *on).map(|(flag, _)| flag));
    command.extend(rows.as_deref());
    Ok(if cargo::succeeds(&command)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
