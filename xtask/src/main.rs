//! The project's own tasks: `cargo xtask <task>`. One file per task.

mod bench;
mod cargo;
mod needs;
mod nightly;
mod python;
mod screenshots;
mod test;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

const HELP: &str = "\
Usage: cargo xtask <task>

Tasks:
  test [--only FILTER]  Check everything: tidiness, dependencies, format, lints, and all tests. The last line is
                        `N passed, M failed`, where a failed check counts as one failure.
                        Installs PostgreSQL and the like if missing and you are root, and
                        Python packages from PyPI beside what cargo builds.
                        With --only: just the tests whose name contains FILTER, and no other check
  bench [NAME ...] [--quick]
                        Measure: sql, handler, command, http, load, memory, latency,
                        machines, statements, noop, submit, first-commit, listeners;
                        ratios within one run
  nightly [--rows N]    Run examples/nightly on servers of its own, 1,000,000 transactions or N of
                        them, and print what was measured beside what was asked for
  screenshots           Make the pictures in docs/images anew, from the dashboard as it is
  tidy                  Format the code, then run the checks that need no tests

Exits with 0 if all is well, 1 if something failed, 2 if something is missing or misspelt.";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    go_to_the_root()?;
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["test"] => test::run(None),
        ["test", "--only", filter] => test::run(Some(filter)),
        ["bench", rest @ ..] => bench::run(rest),
        ["nightly", rest @ ..] => nightly::run(rest),
        ["screenshots"] => screenshots::run(),
        ["tidy"] => tidy::run(),
        ["help" | "-h" | "--help"] => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("{HELP}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Tasks may be started from any folder of the project; cargo tells where xtask is.
fn go_to_the_root() -> anyhow::Result<()> {
    if let Some(xtask) = env::var_os("CARGO_MANIFEST_DIR") {
        let root = Path::new(&xtask).parent().context("xtask is a folder of the project")?;
        env::set_current_dir(root).with_context(|| root.display().to_string())?;
    }
    Ok(())
}
