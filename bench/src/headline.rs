//! One scenario that compares Windlass with what people use instead: a backfill of a TPC-H-like `lineitem` table while
//! an application uses the same rows. Reported are rows per second, the application's latency, dead tuples, and the
//! rows that are wrong after ten `kill -9`.

mod bystander;
mod chart;
mod contender;
mod kills;
mod lineitem;
mod page;
mod processes;

use crate::setup::{Bench, settle};
use anyhow::{Result, ensure};
use bystander::Bystander;
use contender::{Contender, Tools};
use lineitem::Lineitem;
use std::time::{Duration, Instant};
use windlass_testkit::Database;

/// The rows of the table, unless the command line says fewer.
const ROWS: u64 = 10_000_000;
/// How long the application runs alone, for the latency to compare with.
const ALONE: Duration = Duration::from_secs(15);

/// What was measured of all contenders.
pub(super) struct Figures {
    /// The application's 99th percentile with no backfill, in milliseconds.
    alone: f64,
    /// Where and when this was measured.
    conditions: String,
    lines: Vec<Line>,
}

/// What was measured of one contender.
struct Line {
    contender: Contender,
    /// The rows that it processed. Slow contenders process only the first rows of the table.
    rows: u64,
    took: Duration,
    /// The application's 99th percentile meanwhile, in milliseconds.
    p99: f64,
    /// Dead tuples that it left in the whole database, also in the tables of a queue or of a store.
    dead: i64,
    /// What ten kills did to it, for those that can be killed.
    killed: Option<Killed>,
}

/// The result of a run with kills.
struct Killed {
    kills: usize,
    rows: u64,
    lost: i64,
    doubled: i64,
}

impl Line {
    fn rate(&self) -> f64 {
        self.rows as f64 / self.took.as_secs_f64()
    }
}

/// Runs the scenario, prints the table, and with `write` puts table and chart into docs/.
pub(crate) async fn run(bench: &Bench, write: bool) -> Result<()> {
    // Four lines per order.
    let rows = bench.rows(ROWS).next_multiple_of(4);
    let tools = Tools::prepare()?;
    eprintln!("headline: making a table of {rows} rows");
    let table = Lineitem::create(bench, rows).await;
    let database = table.copy(bench).await;
    let bystander = Bystander::start(&database, rows)?;
    tokio::time::sleep(ALONE).await;
    let alone = bystander.stop().await?.p99();
    let conditions = conditions(&database, rows).await?;
    table.drop(database).await;
    let mut lines = Vec::new();
    for contender in Contender::ALL {
        let line = measure(bench, &table, &tools, contender).await?;
        eprintln!("{}", page::row(&line));
        lines.push(line);
    }
    let figures = Figures { alone, conditions, lines };
    println!("\n{}", page::table(&figures));
    if write {
        page::write(&figures)?;
    }
    Ok(())
}

/// Measures one contender: first without a kill, then with kills.
async fn measure(
    bench: &Bench,
    table: &Lineitem,
    tools: &Tools,
    contender: Contender,
) -> Result<Line> {
    let rows = contender.most_rows().map_or(table.rows, |most| most.min(table.rows));
    let database = table.copy(bench).await;
    let mut run = contender.prepare(tools, &database, rows).await?;
    settle(&database).await;
    let bystander = Bystander::start(&database, table.rows)?;
    let begun = Instant::now();
    run.start().await?;
    run.wait().await?;
    let took = begun.elapsed();
    drop(run);
    let served = bystander.stop().await?;
    let (lost, doubled) = lineitem::wrong(&database, rows).await?;
    ensure!(lost + doubled == 0, "{}: {lost} rows lost, {doubled} doubled", contender.name());
    // Without those of the application.
    let dead = lineitem::dead_tuples(&database).await - i64::try_from(served.transactions)?;
    table.drop(database).await;
    let mut line = Line { contender, rows, took, p99: served.p99(), dead, killed: None };
    if contender.can_be_killed() {
        line.killed = Some(kills::run(bench, table, tools, contender, line.rate()).await?);
    }
    Ok(line)
}

/// The conditions as a sentence for the page.
async fn conditions(database: &Database, rows: u64) -> Result<String> {
    let date: String = database.one("SELECT to_char(now(), 'FMDD FMMonth YYYY')").await;
    let version: String = database.one("SELECT current_setting('server_version')").await;
    let cores = std::thread::available_parallelism()?;
    Ok(format!(
        "Measured on {date} on {cores} cores that all programs and the server share, PostgreSQL {version}, a table of \
         {} rows.\nRepeat it with `cargo xtask bench --headline --rows={rows} --write`; without `--rows` the table has \
         {} rows.\n",
        page::thousands(rows),
        page::thousands(ROWS)
    ))
}
