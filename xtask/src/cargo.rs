//! Running cargo from within cargo.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The cargo that runs this task, with an environment as if it were called from a shell.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    // Cargo sets these variables for xtask. Some build scripts watch them, and would run again each time.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs cargo and returns whether it succeeded.
pub(crate) fn succeeds(args: &[&str]) -> anyhow::Result<bool> {
    eprintln!("xtask: cargo {}", args.join(" "));
    Ok(command(args).status().context("failed to start cargo")?.success())
}

/// The folder of unpacked database servers: cargo's target folder. Under root the servers run as the user `postgres`, who
/// may not be able to read the home folder of root, where cargo's target folder may be.
pub(crate) fn servers() -> anyhow::Result<PathBuf> {
    let process = fs::metadata("/proc/self").context("failed to read the user of xtask")?;
    match process.uid() {
        0 => Ok("/var/cache/windlass-tests".into()),
        _ => target(),
    }
}

/// Cargo's target folder, from which this task runs.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let program = env::current_exe().context("failed to find the path of xtask")?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("xtask does not run from cargo's target folder")?.to_owned())
}
