//! Node.js with the job queues to compare with, which keep their jobs in PostgreSQL.

use crate::python::succeed;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// pg-boss 11 and later need a newer Node.js than Debian has.
const PACKAGES: [&str; 2] = ["graphile-worker@0.17.3", "pg-boss@10.4.2"];

/// A folder with the packages installed.
#[derive(Clone)]
pub(crate) struct Node {
    home: PathBuf,
}

impl Node {
    /// Creates the folder beside the bench's binary, once for these versions.
    pub(crate) fn prepare() -> Result<Node> {
        let home = std::env::current_exe()?.with_file_name("bench-node");
        let (ready, wanted) = (home.join("ready"), PACKAGES.join(" "));
        if std::fs::read_to_string(&ready).ok().as_ref() != Some(&wanted) {
            std::fs::create_dir_all(&home)?;
            succeed(
                Command::new("npm")
                    .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix", "."])
                    .args(PACKAGES)
                    .current_dir(&home),
            )
            .context("node with npm is needed: apt-get install nodejs npm")?;
            std::fs::write(ready, wanted)?;
        }
        Ok(Node { home })
    }

    /// A script with its arguments.
    pub(crate) fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let mut node = Command::new("node");
        node.current_dir(&self.home).env("NO_LOG_SUCCESS", "1");
        node.args(["-e", script]).args(arguments);
        node
    }
}
