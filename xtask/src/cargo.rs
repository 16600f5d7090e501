//! Running cargo from within cargo.

use std::env;
use std::process::Command;

use anyhow::Context;

/// The same cargo that runs this task, as if it were called from outside.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    // What cargo tells about xtask must not reach the build scripts of other crates: some watch
    // these variables, and would be built again each time.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs cargo and tells whether it was content.
pub(crate) fn succeeds(args: &[&str]) -> anyhow::Result<bool> {
    eprintln!("xtask: cargo {}", args.join(" "));
    Ok(command(args).status().context("cargo does not start")?.success())
}
