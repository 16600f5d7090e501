//! `cargo xtask tidy`: rustfmt, clippy, and the house rules that neither of them checks.

mod dependencies;
mod rules;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

use crate::cargo;
pub(crate) use dependencies::{are_accepted, embedding_is_lean, have_no_advisories};

/// Formats the code, then runs the checks that need no tests.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let formatted = cargo::succeeds(&["fmt", "--all"])?;
    let clean = is_clean()?;
    let accepted = are_accepted()? && embedding_is_lean()? && have_no_advisories()?;
    let lint_free = has_no_lints()?;
    Ok(if formatted && clean && accepted && lint_free {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether the code is formatted.
pub(crate) fn is_formatted() -> anyhow::Result<bool> {
    cargo::succeeds(&["fmt", "--all", "--check"])
}

/// Whether clippy prints no warning, with all features and with the default features.
pub(crate) fn has_no_lints() -> anyhow::Result<bool> {
    let all = ["clippy", "--workspace", "--all-features", "--all-targets", "--", "-D", "warnings"];

    Ok(cargo::succeeds(&all)?
        && cargo::succeeds(&["clippy", "-p", "windlass-cli", "--", "-D", "warnings"])?)
}

/// Whether the documentation builds without warnings: no broken link, no missing item.
pub(crate) fn is_documented() -> anyhow::Result<bool> {
    let args = ["doc", "--no-deps", "--workspace", "--all-features"];
    eprintln!("xtask: cargo {}", args.join(" "));
    Ok(cargo::command(&args).env("RUSTDOCFLAGS", "-D warnings").status()?.success())
}

/// Whether all files follow the house rules. Prints each violation.
pub(crate) fn is_clean() -> anyhow::Result<bool> {
    eprintln!("xtask: house rules");
    let mut clean = true;
    for path in files()? {
        // Binary files have no rules. A file that git still lists may be deleted.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for finding in rules::check(Path::new(&path), &text) {
            eprintln!("{path}:{finding}");
            clean = false;
        }
    }
    Ok(clean)
}

/// The files of the project, including those that are not committed.
fn files() -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("failed to start git")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git ls-files: {complaint}");
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}
