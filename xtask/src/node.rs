//! The npm packages that the checks use, beside cargo's build output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::{cargo, python};

/// Validates definitions of state machines.
const ASL_VALIDATOR: &str = "asl-validator@4.0.0";

/// Installs a package into a folder, with its scripts.
pub(crate) fn install(package: &str, folder: &Path) -> anyhow::Result<()> {
    eprintln!("xtask: installing {package} in {}", folder.display());
    let install = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
    python::run(Command::new("npm").args(install).arg("--prefix").arg(folder).arg(package))
}

/// The program asl-validator, installed unless it is there.
pub(crate) fn asl_validator() -> anyhow::Result<PathBuf> {
    let folder = cargo::target()?.join(ASL_VALIDATOR);
    let program = folder.join("node_modules/.bin/asl-validator");
    if !program.exists() {
        install(ASL_VALIDATOR, &folder)?;
    }
    ensure!(program.exists(), "{ASL_VALIDATOR} has no program asl-validator");
    Ok(program)
}
