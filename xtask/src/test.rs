//! `cargo xtask test`: the checks and tests that a change must pass, and their count.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};
use std::thread::available_parallelism;

use anyhow::Context;

use crate::matrix::Server;
use crate::needs::For;
use crate::{cargo, deploy, matrix, needs, python, tidy};

/// The most tests that run at once. Each starts processes and opens database connections, and all tests of a program
/// share one PostgreSQL server with 300 connections.
const MAX_TEST_THREADS: usize = 8;

type Check = (&'static str, fn() -> anyhow::Result<bool>);

const QUICK_CHECKS: [Check; 3] = [
    ("tidy", tidy::is_clean),
    ("dependencies", tidy::are_accepted),
    ("format", tidy::is_formatted),
];

const SLOW_CHECKS: [Check; 5] = [
    ("embedding", tidy::embedding_is_lean),
    ("advisories", tidy::have_no_advisories),
    ("deployment", deploy::is_valid),
    ("lints", tidy::has_no_lints),
    ("documentation", tidy::is_documented),
];

/// The tests of `--quick`, as arguments of `cargo test`.
const QUICK_TESTS: [&[&str]; 3] = [
    // Unit tests.
    &["--lib", "--bins"],
    // The conformance suites of the store and of the connectors, on SQLite.
    &["--test", "conformance", "sqlite::"],
    // The tests of the command line.
    &["--test", "it", "commands::"],
];

/// Runs all checks and all tests.
pub(crate) fn run_all() -> anyhow::Result<ExitCode> {
    run(For::AllTests, &[&QUICK_CHECKS[..], &SLOW_CHECKS].concat(), &[&[]])
}

/// Runs the tests whose name contains `filter`.
pub(crate) fn run_only(filter: &str) -> anyhow::Result<ExitCode> {
    run(For::AllTests, &[], &[&[filter]])
}

/// Runs the fast checks and tests.
pub(crate) fn run_quick() -> anyhow::Result<ExitCode> {
    run(For::QuickTests, &QUICK_CHECKS, &QUICK_TESTS)
}

/// Runs the suites of the commit protocol on every supported version of the databases whose name contains `filter`.
pub(crate) fn run_matrix(filter: &str) -> anyhow::Result<ExitCode> {
    if !needs::install(For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    python::TESTS.install();
    let (mut count, mut failed) = (Count::default(), Vec::new());
    for server in matrix::servers(filter)? {
        if !run_on(&server, &mut count)? {
            failed.push(server.name);
        }
    }
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    Ok(conclude(&failed, &count))
}

/// Runs the suites of a server. Returns whether every test program ran to its end.
fn run_on(server: &Server, count: &mut Count) -> anyhow::Result<bool> {
    eprintln!("xtask: {}", server.name);
    let mut ran = true;
    for arguments in server.suites {
        let failed_before = count.failed;
        // A test program that crashes or does not build fails without a failed test.
        let passed = run_tests(arguments, Some(server), count)?;
        ran &= passed || count.failed > failed_before;
    }
    Ok(ran)
}

fn run(tests: For, checks: &[Check], runs: &[&[&str]]) -> anyhow::Result<ExitCode> {
    if !needs::install(tests) {
        return Ok(ExitCode::from(2));
    }
    if tests == For::AllTests {
        python::TESTS.install();
        python::MINISTACK.install();
    }
    let mut failed_checks = Vec::new();
    for (name, check) in checks {
        if !check()? {
            failed_checks.push(*name);
        }
    }
    let mut count = Count::default();
    for arguments in runs {
        let failed_before = count.failed;
        // A test program that crashes or does not build fails without a failed test.
        if !run_tests(arguments, None, &mut count)? && count.failed == failed_before {
            failed_checks.push("tests");
        }
    }
    if tests == For::AllTests
        && !checks.is_empty()
        && let Some(server) = matrix::mysql()
        && !run_on(&server, &mut count)?
    {
        failed_checks.push("tests on MySQL");
    }
    if count.ignored > 0 {
        eprintln!("xtask: {} tests are ignored; no test may be", count.ignored);
        failed_checks.push("ignored tests");
    }
    Ok(conclude(&failed_checks, &count))
}

/// The sums over all test programs.
#[derive(Debug, Default, PartialEq)]
struct Count {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Count {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let Some((_, numbers)) = result.split_once(". ") else { return };
        for part in numbers.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

/// Runs `cargo test` with these arguments, copies its output, and counts. Returns whether cargo succeeded.
///
/// Cargo builds the programs of every crate together with its tests. A build of the programs alone would compile all
/// dependencies a second time, with fewer features.
///
/// `server` replaces this machine's server.
fn run_tests(
    arguments: &[&str],
    server: Option<&Server>,
    count: &mut Count,
) -> anyhow::Result<bool> {
    let mut args = vec!["test", "--workspace", "--all-features", "--no-fail-fast"];
    args.extend(arguments);
    eprintln!("xtask: cargo {}", args.join(" "));
    let mut command = cargo::command(&args);
    if env::var_os("RUST_TEST_THREADS").is_none() {
        let threads = available_parallelism().map_or(1, |cores| cores.get().min(MAX_TEST_THREADS));
        command.env("RUST_TEST_THREADS", threads.to_string());
    }
    if let Some(server) = server {
        command.env(server.variable, &server.programs);
    }
    let mut tests = command.stdout(Stdio::piped()).spawn().context("failed to start cargo")?;
    let mut output = BufReader::new(tests.stdout.take().context("cargo has no output pipe")?);
    let mut line = Vec::new();
    // Bytes, because the output of a test need not be UTF-8.
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        count.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(tests.wait()?.success())
}

/// Prints the count as the last line.
fn conclude(failed_checks: &[&str], count: &Count) -> ExitCode {
    if !failed_checks.is_empty() {
        eprintln!("xtask: failed checks: {}", failed_checks.join(", "));
    }
    let failed = count.failed + failed_checks.len();
    println!("{} passed, {failed} failed", count.passed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_programs_are_added_and_other_lines_ignored() {
        let mut count = Count::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.10s\n",
            "test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n",
            "test results::are_summed ... ok\n",
            "running 5 tests\n",
        ] {
            count.add(line);
        }
        assert_eq!(count, Count { passed: 15, failed: 2, ignored: 1 });
    }
}
