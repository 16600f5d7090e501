//! The application that uses the rows meanwhile: pgbench, which updates rows by key at a fixed rate.

use crate::python::succeed;
use anyhow::{Context, Result, ensure};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use windlass_testkit::Database;

/// Transactions per second.
const RATE: &str = "200";
const CLIENTS: &str = "4";

/// A running pgbench.
pub(super) struct Bystander {
    process: Child,
    folder: TempDir,
    begun: SystemTime,
}

/// What the application did.
pub(super) struct Served {
    /// How many transactions it made, each of which updated one row.
    pub(super) transactions: usize,
    /// The latencies of those that were due in time, sorted, in microseconds from the time at which they were due.
    latencies: Vec<u64>,
}

impl Bystander {
    pub(super) fn start(database: &Database, rows: u64) -> Result<Bystander> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("application.sql");
        std::fs::write(
            &script,
            format!(
                "\\set order random(0, {} - 1)\n\\set line random(1, 4)\n\
                 UPDATE lineitem SET l_quantity = l_quantity + 1, version = version + 1 \
                 WHERE l_orderkey = :order AND l_linenumber = :line;\n",
                rows / 4
            ),
        )?;
        let process = Command::new("pgbench")
            .args(["-n", "-M", "prepared", "-j", "1", "-c", CLIENTS, "-R", RATE, "-T", "86400"])
            .args(["--log", "--log-prefix"])
            .arg(folder.path().join("latency"))
            .arg("-f")
            .arg(&script)
            .arg(database.url())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("pgbench does not start")?;
        Ok(Bystander { process, folder, begun: SystemTime::now() })
    }

    /// Ends the run and reads its log. Transactions that were due until now count, also those that are late because
    /// they had to wait for a lock; so the application gets time to catch up.
    pub(super) async fn stop(mut self) -> Result<Served> {
        let until = SystemTime::now();
        let catch_up = until.duration_since(self.begun)?.div_f64(5.0);
        tokio::time::sleep(catch_up.max(Duration::from_secs(2))).await;
        // The signal of pgbench's own timer: it finishes as if the time were over, and writes the rest of its log.
        succeed(Command::new("kill").args(["-ALRM", &self.process.id().to_string()]))?;
        let status = self.process.wait()?;
        ensure!(status.success(), "pgbench: {status}");
        let until = u64::try_from(until.duration_since(SystemTime::UNIX_EPOCH)?.as_micros())?;
        let mut served = Served { transactions: 0, latencies: Vec::new() };
        for entry in std::fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("latency")) {
                for line in std::fs::read_to_string(path)?.lines() {
                    served.add(line, until).with_context(|| format!("pgbench logs {line:?}"))?;
                }
            }
        }
        ensure!(!served.latencies.is_empty(), "pgbench did nothing");
        served.latencies.sort_unstable();
        Ok(served)
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    /// Reads a line of the log: client, number, latency, script, and the second and microsecond of the end.
    fn add(&mut self, line: &str, until: u64) -> Result<()> {
        let numbers = line.split_whitespace().map(str::parse::<u64>);
        let [_, _, latency, _, second, micros, ..] = numbers.collect::<Result<Vec<_>, _>>()?[..]
        else {
            anyhow::bail!("too few numbers")
        };
        self.transactions += 1;
        if second * 1_000_000 + micros - latency <= until {
            self.latencies.push(latency);
        }
        Ok(())
    }

    /// The 99th percentile in milliseconds.
    pub(super) fn p99(&self) -> f64 {
        let place = (self.latencies.len() as f64 * 0.99) as usize;
        self.latencies[place.min(self.latencies.len() - 1)] as f64 / 1000.0
    }
}
