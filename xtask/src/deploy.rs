//! `cargo xtask deployment`: checks the files of deploy/ as far as that needs no cluster and no account.

use std::process::ExitCode;

use crate::needs;
use crate::python::{CHECKOV, TESTS};

/// Installs what the checks need, and runs them.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    TESTS.install();
    Ok(if is_valid()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the manifests fit the Kubernetes schemas, and Terraform is parsed and scanned without a finding.
pub(crate) fn is_valid() -> anyhow::Result<bool> {
    CHECKOV.install();
    let consistent = TESTS.succeeds("python", &["deploy/check.py"])?;
    let scan = ["-d", "deploy/terraform", "--framework", "terraform"];
    let quiet = ["--compact", "--quiet", "--skip-download"];
    // Findings that are accepted have a comment with the reason beside them.
    Ok(CHECKOV.succeeds("checkov", &[&scan[..], &quiet[..]].concat())? && consistent)
}
