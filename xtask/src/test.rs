//! `cargo xtask test`: everything a change must pass, and an honest count at the end.

use std::io::{BufRead, BufReader, Write};
use std::process::{ExitCode, Stdio};

use anyhow::Context;

use crate::{cargo, needs, python, tidy};

/// Runs all checks and tests, or only the tests that `filter` names.
pub(crate) fn run(filter: Option<&str>) -> anyhow::Result<ExitCode> {
    if !needs::are_met() {
        return Ok(ExitCode::from(2));
    }
    python::make();
    let mut failed_checks = Vec::new();
    if filter.is_none() {
        let checks: [(&str, Check); 7] = [
            ("tidy", tidy::is_clean),
            ("dependencies", tidy::are_accepted),
            ("embedding", tidy::embedding_is_lean),
            ("advisories", tidy::have_no_advisories),
            ("format", tidy::is_formatted),
            ("lints", tidy::has_no_lints),
            ("documentation", tidy::is_documented),
        ];
        for (name, check) in checks {
            if !check()? {
                failed_checks.push(name);
            }
        }
    }
    let mut count = Count::default();
    // Cargo builds the programs of every crate with its tests, before the first test runs. A build of
    // the programs alone would compile all dependencies a second time, with fewer features.
    let succeeded = run_tests(filter, &mut count)?;
    // A test program that crashes or does not build fails without any test that failed.
    if !succeeded && count.failed == 0 {
        failed_checks.push("tests");
    }
    if count.ignored > 0 {
        eprintln!("xtask: {} tests are ignored; none may be", count.ignored);
        failed_checks.push("ignored tests");
    }
    Ok(conclude(&failed_checks, &count))
}

type Check = fn() -> anyhow::Result<bool>;

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

/// Passes the output on while it counts, and tells whether cargo was content.
fn run_tests(filter: Option<&str>, count: &mut Count) -> anyhow::Result<bool> {
    let mut args = vec!["test", "--workspace", "--all-features", "--no-fail-fast"];
    args.extend(filter);
    eprintln!("xtask: cargo {}", args.join(" "));
    let mut tests =
        cargo::command(&args).stdout(Stdio::piped()).spawn().context("cargo does not start")?;
    let mut output = BufReader::new(tests.stdout.take().context("the output is a pipe")?);
    let mut line = Vec::new();
    // Bytes, because a test may print what is no text.
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        count.add(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(tests.wait()?.success())
}

/// Prints the count as the very last line, and nothing else on it.
fn conclude(failed_checks: &[&str], count: &Count) -> ExitCode {
    if !failed_checks.is_empty() {
        eprintln!("xtask: failed: {}", failed_checks.join(", "));
    }
    let failed = count.failed + failed_checks.len();
    println!("{} passed, {failed} failed", count.passed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_summed_and_other_lines_are_not() {
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
