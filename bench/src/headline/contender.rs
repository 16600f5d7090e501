//! The programs that do the backfill, and how each is started, killed and seen to have finished.

use super::processes::{POLL, Processes};
use crate::node::Node;
use crate::python::{Python, succeed};
use crate::setup::{binary, folder};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::Client;
use windlass_testkit::{Database, Windlass};

/// A program that does the backfill.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    OneUpdate,
    Plpgsql,
    TwoPlpgsql,
    PsycopgBatches,
    PsycopgRows,
    Graphile,
    PgBoss,
    Sql,
    Handler,
}

/// Node.js uses one core per process.
const NODE_PROCESSES: usize = 2;
/// Rows of contenders that would take hours for the whole table: with a job per row, and with a commit per row.
const QUEUED_ROWS: u64 = 40_000;
const SINGLE_ROWS: u64 = 8_000;

/// What the contenders need besides this program.
pub(super) struct Tools {
    python: Python,
    node: Node,
}

impl Tools {
    pub(super) fn prepare() -> Result<Tools> {
        Ok(Tools { python: Python::prepare()?, node: Node::prepare()? })
    }
}

impl Contender {
    pub(super) const ALL: [Contender; 9] = [
        Contender::Sql,
        Contender::Handler,
        Contender::OneUpdate,
        Contender::Plpgsql,
        Contender::TwoPlpgsql,
        Contender::PsycopgBatches,
        Contender::PsycopgRows,
        Contender::Graphile,
        Contender::PgBoss,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Contender::OneUpdate => "one UPDATE",
            Contender::Plpgsql => "plpgsql loop",
            Contender::TwoPlpgsql => "two plpgsql loops",
            Contender::PsycopgBatches => "psycopg, batches",
            Contender::PsycopgRows => "psycopg, row by row",
            Contender::Graphile => "graphile-worker",
            Contender::PgBoss => "pg-boss",
            Contender::Sql => "Windlass, sql",
            Contender::Handler => "Windlass, handler",
        }
    }

    pub(super) fn is_ours(self) -> bool {
        matches!(self, Contender::Sql | Contender::Handler)
    }

    /// How many rows it processes at most.
    pub(super) fn most_rows(self) -> Option<u64> {
        match self {
            Contender::PsycopgRows => Some(SINGLE_ROWS),
            Contender::Graphile | Contender::PgBoss => Some(QUEUED_ROWS),
            _ => None,
        }
    }

    /// Whether it continues after a kill. A loop inside the server has no process of its own, and one UPDATE is a
    /// single transaction.
    pub(super) fn can_be_killed(self) -> bool {
        !matches!(self, Contender::OneUpdate | Contender::Plpgsql | Contender::TwoPlpgsql)
    }

    /// How long its processes take until they work, on a machine that is not too busy.
    pub(super) fn time_to_start(self) -> Duration {
        match self {
            Contender::Graphile | Contender::PgBoss => Duration::from_millis(1500),
            Contender::PsycopgBatches | Contender::PsycopgRows => Duration::from_millis(400),
            _ => Duration::from_millis(100),
        }
    }

    /// Prepares a run over the first `rows` rows: queues jobs, or submits the job.
    pub(super) async fn prepare(
        self,
        tools: &Tools,
        database: &Database,
        rows: u64,
    ) -> Result<Run> {
        let orders = rows / 4;
        let files = tempfile::tempdir()?;
        let url = database.url().to_owned();
        match self {
            Contender::OneUpdate => {
                let sql = format!("UPDATE lineitem SET {RAISE} WHERE l_orderkey < {orders}");
                Run::of_processes(1, files, move || psql(&url, &sql))
            }
            Contender::Plpgsql => Run::of_processes(1, files, move || plpgsql(&url, 0, orders)),
            Contender::TwoPlpgsql => {
                let half = std::cell::Cell::new(0);
                Run::of_processes(2, files, move || {
                    let from = half.replace(orders / 2);
                    plpgsql(&url, from, if from == 0 { orders / 2 } else { orders })
                })
            }
            Contender::PsycopgBatches | Contender::PsycopgRows => {
                let how = if self == Contender::PsycopgRows { "rows" } else { "batches" };
                let position = files.path().join("position").display().to_string();
                let python = tools.python.clone();
                let orders = orders.to_string();
                Run::of_processes(1, files, move || {
                    python.command(BACKFILL, &[&url, how, &position, &orders])
                })
            }
            Contender::Graphile | Contender::PgBoss => {
                let kind = if self == Contender::Graphile { "graphile" } else { "pgboss" };
                let node = tools.node.clone();
                let command =
                    move |what: &str, rows: &str| node.command(ROWS, &[&url, what, kind, rows]);
                succeed(&mut command("queue", &rows.to_string()))?;
                let unlock = command("unlock", "");
                let mut run =
                    Run::of_processes(NODE_PROCESSES, files, move || command("work", ""))?;
                run.unlock = Some(unlock);
                Ok(run)
            }
            Contender::Sql | Contender::Handler => {
                let jobs = jobs(orders);
                let folder = folder(database, database, &jobs)?;
                let windlass = Windlass::new(folder.path()).binary(binary()?);
                let name = if self == Contender::Sql { "RAISE" } else { "RAISE_EACH" };
                let id = windlass.run(["submit", name]).await.ok().stdout.trim().to_owned();
                let (ours, is_sql) = (std::env::current_exe()?, self == Contender::Sql);
                let (binary, home) = (binary()?, folder.path().to_owned());
                let mut run = Run::of_processes(1, folder, move || match is_sql {
                    true => worker(&binary, &home, &["worker"]),
                    false => worker(&ours, &home, &["--work"]),
                })?;
                run.job = Some((database.client().await, id));
                Ok(run)
            }
        }
    }
}

/// A run of a contender.
pub(super) struct Run {
    processes: Processes,
    /// The job that must complete. Without one, the processes end by themselves.
    job: Option<(Client, String)>,
    /// Makes the jobs of killed workers available again.
    unlock: Option<Command>,
    _files: TempDir,
}

impl Run {
    fn of_processes(
        count: usize,
        files: TempDir,
        make: impl Fn() -> Command + 'static,
    ) -> Result<Run> {
        let processes = Processes::new(count, make)?;
        Ok(Run { processes, job: None, unlock: None, _files: files })
    }

    pub(super) async fn start(&mut self) -> Result<()> {
        self.processes.start()
    }

    /// Whether all rows are done.
    pub(super) async fn ended(&mut self) -> Result<bool> {
        let ended = self.processes.ended()?;
        let Some((client, id)) = &self.job else { return Ok(ended) };
        ensure!(!ended, "the worker ended before the job");
        let sql = format!("SELECT status FROM windlass_jobs WHERE id = '{id}'");
        let status = client.query_one(&sql, &[]).await?.get::<_, String>(0);
        let is_open = matches!(status.as_str(), "QUEUED" | "PROCESSING");
        ensure!(is_open || status == "COMPLETED", "the job is {status}");
        Ok(!is_open)
    }

    pub(super) async fn wait(&mut self) -> Result<()> {
        while !self.ended().await? {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Kills all processes. `start` starts new ones.
    pub(super) async fn kill(&mut self) -> Result<()> {
        self.processes.kill()?;
        self.unlock.as_mut().map_or(Ok(()), succeed)
    }
}

const BACKFILL: &str = include_str!("../../python/backfill.py");
const ROWS: &str = include_str!("../../node/rows.js");
const RAISE: &str = "l_points = l_points + 1, version = version + 1";

/// The two job types. A lease is short, so that the chunks of a killed worker do not wait long.
fn jobs(orders: u64) -> String {
    let source = format!(
        "source.connection = \"app\"\nsource.table = \"lineitem\"\nsource.where = \"l_orderkey < {orders}\"\n\
         chunk.lease = \"3s\"\n"
    );
    format!(
        "[jobs.RAISE]\n{source}step.sql = \"UPDATE lineitem SET {RAISE} WHERE {{chunk}}\"\n\
         [jobs.RAISE_EACH]\n{source}step.handler = \"raise\"\nstep.version = \"version\"\n"
    )
}

fn worker(program: &Path, folder: &PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command
}

fn psql(url: &str, sql: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, url]);
    psql
}

/// A loop inside the server that commits after 250 orders, which are 1,000 rows.
fn plpgsql(url: &str, from: u64, to: u64) -> Command {
    let sql = format!(
        "DO $$ DECLARE first bigint := {from}; BEGIN
             WHILE first < {to} LOOP
                 UPDATE lineitem SET {RAISE} WHERE l_orderkey >= first AND l_orderkey < least(first + 250, {to});
                 COMMIT;
                 first := first + 250;
             END LOOP;
         END $$"
    );
    psql(url, &sql)
}
