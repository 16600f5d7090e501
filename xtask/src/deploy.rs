//! `cargo xtask deployment`: checks the files of deploy/ as far as that needs no cluster and no account.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::python::{CHECKOV, TESTS};
use crate::{cargo, needs, node};

/// Installs what the checks need, and runs them.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    TESTS.install();
    Ok(if is_valid()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the manifests fit the Kubernetes schemas, the state machines their schema, and Terraform is parsed and
/// scanned without a finding.
pub(crate) fn is_valid() -> anyhow::Result<bool> {
    CHECKOV.install();
    let consistent = TESTS.succeeds("python", &["deploy/check.py"])?;
    let scan = ["-d", "deploy/terraform", "--framework", "terraform"];
    let quiet = ["--compact", "--quiet", "--skip-download"];
    // Findings that are accepted have a comment with the reason beside them.
    let scanned = CHECKOV.succeeds("checkov", &[&scan[..], &quiet[..]].concat())?;
    Ok(state_machines_are_valid()? && scanned && consistent)
}

/// Whether asl-validator accepts the definitions of the state machines.
fn state_machines_are_valid() -> anyhow::Result<bool> {
    let validator = node::asl_validator()?;
    let folder = cargo::target()?.join("state-machines");
    fs::create_dir_all(&folder)?;
    let mut valid = true;
    for name in ["state-machine.json", "state-machine-functions.json"] {
        let template = format!("deploy/terraform/{name}");
        let text = fs::read_to_string(&template).with_context(|| template.clone())?;
        let filled = folder.join(name);
        fs::write(&filled, fill(&text))?;
        eprintln!("xtask: asl-validator {template}");
        let mut command = Command::new(&validator);
        valid &= command.arg("--json-path").arg(&filled).status()?.success();
    }
    Ok(valid)
}

/// Replaces each `${name}`, which Terraform fills, by a number: some stand outside of texts.
fn fill(template: &str) -> String {
    let mut parts = template.split("${");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |filled, part| {
        let rest = part.split_once('}').map_or(part, |(_, rest)| rest);
        filled + "1" + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(fill("{\"a\": ${b}, \"c\": \"{% ${d} %}\"}"), "{\"a\": 1, \"c\": \"{% 1 %}\"}");
        assert_eq!(fill("{}"), "{}");
    }
}
