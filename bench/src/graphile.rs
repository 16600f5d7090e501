//! graphile-worker, a PostgreSQL job queue for Node.js, with jobs that do nothing.

use crate::python::succeed;
use crate::setup::settle;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass_testkit::Database;

const NOOP: &str = include_str!("../node/noop.js");
const PACKAGE: &str = "graphile-worker@0.17.3";

/// A folder with the package installed.
pub(crate) struct Graphile {
    home: PathBuf,
}

impl Graphile {
    /// Creates the folder beside the bench's binary, once.
    pub(crate) fn prepare() -> Result<Graphile> {
        let home = std::env::current_exe()?.with_file_name("bench-node");
        if !home.join("ready").exists() {
            std::fs::create_dir_all(&home)?;
            succeed(
                Command::new("npm")
                    .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix", "."])
                    .arg(PACKAGE)
                    .current_dir(&home),
            )
            .context("node with npm is needed: apt-get install nodejs npm")?;
            std::fs::write(home.join("ready"), "")?;
        }
        Ok(Graphile { home })
    }

    /// The time from the first lease to the last completion of `jobs` queued jobs. A Node.js process uses one core,
    /// so one process runs per core.
    pub(crate) async fn time(
        &self,
        database: &Database,
        jobs: u64,
        mode: &str,
    ) -> Result<Duration> {
        succeed(&mut self.node(database, "queue", &jobs.to_string()))?;
        settle(database).await;
        let cores = std::thread::available_parallelism()?.get();
        let spawn = |_| self.node(database, "work", mode).stdout(Stdio::piped()).spawn();
        let workers = (0..cores).map(spawn).collect::<std::io::Result<Vec<_>>>()?;
        let mut times = Vec::new();
        for worker in workers {
            let output = worker.wait_with_output()?;
            ensure!(output.status.success(), "graphile-worker: {}", output.status);
            for time in String::from_utf8(output.stdout)?.split_whitespace() {
                times.push(time.parse::<u64>()?);
            }
        }
        let left: i64 = database.one("SELECT count(*) FROM graphile_worker.jobs").await;
        ensure!(left == 0, "graphile-worker left {left} jobs");
        times.sort();
        let (first, last) = times.first().zip(times.last()).context("no times")?;
        Ok(Duration::from_millis(last - first))
    }

    fn node(&self, database: &Database, what: &str, how: &str) -> Command {
        let mut node = Command::new("node");
        node.current_dir(&self.home).env("NO_LOG_SUCCESS", "1");
        node.args(["-e", NOOP, database.url(), what, how]);
        node
    }
}
