//! graphile-worker, a PostgreSQL job queue for Node.js, with jobs that do nothing.

use crate::node::Node;
use crate::python::succeed;
use crate::setup::settle;
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::time::Duration;
use windlass_testkit::Database;

const NOOP: &str = include_str!("../node/noop.js");

/// Runs jobs of graphile-worker.
pub(crate) struct Graphile {
    node: Node,
}

impl Graphile {
    pub(crate) fn prepare() -> Result<Graphile> {
        Ok(Graphile { node: Node::prepare()? })
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
        self.node.command(NOOP, &[database.url(), what, how])
    }
}
