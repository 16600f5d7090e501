//! What a chunk costs the server in CPU time, and how long leases take, by `pg_stat_statements` and the log of slow
//! statements.

use anyhow::{Context, Result};
use std::collections::HashMap;
use std::time::Duration;
use windlass_testkit::Database;

/// `Bench::growing` logs statements that take at least this long, in milliseconds.
const SLOW: f64 = 1.0;
/// How the statement that leases chunks begins.
const LEASE: &str = "-- Leases waiting chunks";

/// What the chunks of one run cost.
pub(super) struct Cost {
    /// Chunks per second.
    pub(super) rate: f64,
    /// CPU milliseconds of the server per chunk.
    pub(super) cpu: f64,
    /// Milliseconds that statements took per chunk, which includes waiting for a core, for locks and for the disk.
    pub(super) elapsed: f64,
    /// Bytes of write-ahead log per chunk.
    pub(super) wal: f64,
    /// How often chunks were leased, and the statement's mean duration in milliseconds.
    pub(super) leases: i64,
    /// Chunks per lease.
    pub(super) each: f64,
    pub(super) mean: f64,
    /// The 99th percentile of leases in milliseconds, or the limit above which statements are logged if it is less.
    pub(super) p99: f64,
}

/// Measures from its start until it is read.
pub(super) struct Meter<'a> {
    database: &'a Database,
    /// The size of the log at the start.
    offset: i64,
    server: Server,
    /// The CPU seconds of the server before.
    cpu: f64,
}

impl Meter<'_> {
    pub(super) async fn start(database: &Database) -> Result<Meter<'_>> {
        database.run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await;
        database.run("SELECT pg_stat_statements_reset()").await;
        let offset = database.one("SELECT size FROM pg_stat_file(pg_current_logfile())").await;
        let file: String = database.one("SELECT pg_read_file('postmaster.pid')").await;
        let first = file.lines().next().context("the server has no process id")?;
        let server = Server(first.trim().parse()?);
        let cpu = server.cpu()?;
        Ok(Meter { database, offset, server, cpu })
    }

    /// The cost of `chunks` chunks that were worked in this time.
    pub(super) async fn read(self, chunks: u64, took: Duration) -> Result<Cost> {
        let cpu = self.server.cpu()? - self.cpu;
        let client = self.database.client().await;
        let totals = format!(
            "SELECT sum(total_exec_time + total_plan_time)::float8,
                 (sum(calls) FILTER (WHERE query LIKE '{LEASE}%'))::bigint,
                 (sum(total_exec_time + total_plan_time) FILTER (WHERE query LIKE '{LEASE}%'))::float8,
                 sum(wal_bytes)::float8
             FROM pg_stat_statements JOIN pg_database ON oid = dbid WHERE datname = current_database()"
        );
        let row = client.query_one(&totals, &[]).await?;
        let (all, leases): (f64, Option<i64>) = (row.get(0), row.get(1));
        let leases = leases.context("no statement leased chunks")?;
        let (leasing, wal): (f64, f64) = (row.get(2), row.get(3));
        // The log is read in pieces, because a value has a limit.
        let mut slow = Slow::default();
        let mut offset = self.offset;
        loop {
            const PIECE: i64 = 64 << 20;
            let sql = "SELECT pg_read_binary_file(pg_current_logfile(), $1, $2)";
            let piece: Vec<u8> = client.query_one(sql, &[&offset, &PIECE]).await?.get(0);
            if piece.is_empty() {
                break;
            }
            offset += i64::try_from(piece.len())?;
            slow.read(&String::from_utf8_lossy(&piece));
        }
        Ok(Cost {
            rate: chunks as f64 / took.as_secs_f64(),
            cpu: cpu * 1000.0 / chunks as f64,
            elapsed: all / chunks as f64,
            wal: wal / chunks as f64,
            leases,
            each: chunks as f64 / leases as f64,
            mean: leasing / leases as f64,
            p99: slow.p99(usize::try_from(leases)?),
        })
    }
}

/// The process that starts all others of the server.
struct Server(u32);

impl Server {
    /// The CPU seconds of all its processes so far, also of those that have ended.
    fn cpu(&self) -> Result<f64> {
        // Fields after the name: the parent is the second, own and inherited times are the twelfth to the fifteenth.
        let fields = |process: u32| -> Option<Vec<f64>> {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            Some(rest.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect())
        };
        let ticks = |fields: &[f64], count| fields.iter().skip(10).take(count).sum::<f64>();
        let mut sum = ticks(&fields(self.0).context("the server has no process")?, 4);
        for entry in std::fs::read_dir("/proc")? {
            if let Ok(process) = entry?.file_name().to_string_lossy().parse::<u32>()
                && let Some(fields) = fields(process)
                && fields.first() == Some(&f64::from(self.0))
            {
                sum += ticks(&fields, 2);
            }
        }
        Ok(sum / 100.0)
    }
}

/// The leases in the log of slow statements.
#[derive(Default)]
struct Slow {
    /// By process: the duration of a slow bind, which plans, until its execution follows.
    bound: HashMap<String, f64>,
    millis: Vec<f64>,
}

impl Slow {
    /// Reads lines such as `4711 LOG:  duration: 1.234 ms  execute s1: -- Leases waiting chunks …`.
    fn read(&mut self, log: &str) {
        for line in log.lines().filter(|line| line.contains(LEASE)) {
            let Some((process, rest)) = line.split_once(" LOG:  duration: ") else { continue };
            let Some((millis, what)) = rest.split_once(" ms  ") else { continue };
            let Ok(millis) = millis.parse::<f64>() else { continue };
            match what.starts_with("execute") {
                true => {
                    let planned = self.bound.remove(process).unwrap_or(0.0);
                    self.millis.push(planned + millis);
                }
                false => {
                    // A bind whose execution was fast is slow all the same.
                    let before = self.bound.insert(process.to_owned(), millis);
                    self.millis.extend(before);
                }
            }
        }
    }

    /// The 99th percentile of `all` leases, of which only the slow ones are known.
    fn p99(mut self, all: usize) -> f64 {
        self.millis.extend(self.bound.into_values());
        self.millis.sort_by(|one, other| other.total_cmp(one));
        self.millis.get(all / 100).copied().unwrap_or(SLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planning_and_execution_of_a_lease_are_one() {
        let mut slow = Slow::default();
        slow.read(&format!(
            "1 LOG:  duration: 1.500 ms  bind s1: {LEASE} by\n1 LOG:  duration: 2.000 ms  execute s1: {LEASE} by\n\
             2 LOG:  duration: 9.000 ms  execute s1: UPDATE\n2 LOG:  duration: 1.250 ms  bind s1: {LEASE} by\n"
        ));
        assert_eq!(slow.millis, [3.5]);
        assert_eq!(slow.p99(100), 1.25);
    }

    #[test]
    fn leases_that_are_not_logged_are_fast() {
        assert_eq!(Slow::default().p99(1000), SLOW);
    }
}
