//! The benchmarks. Each result is a ratio within one run, measured on a PostgreSQL server with `fsync = on` that this
//! program starts and stops. Run them with `cargo xtask bench`.

mod command;
mod dashboard;
mod fan_in;
mod first_commit;
mod graphile;
mod growth;
mod handler;
mod headline;
mod http;
mod idle;
mod latency;
mod listeners;
mod machines;
mod memory;
mod node;
mod noop;
mod pages;
mod plan;
mod planned;
mod posts;
mod process;
mod python;
mod report;
mod sales;
mod script;
mod served;
mod setup;
mod sql;
mod statements;
mod submit;
mod tiny;
mod transactions;
mod watched;
mod work;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use fan_in::What;
use report::Report;
use setup::{Bench, Sizes};

/// Benchmarks of Windlass, as ratios within one run.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Cli {
    /// Benchmarks to run; all of them by default
    #[arg(value_enum)]
    names: Vec<Name>,
    /// Use a tenth of the rows
    #[arg(long)]
    quick: bool,
    /// Use at most N rows
    #[arg(long, value_name = "N")]
    rows: Option<u64>,
    /// Run one scenario instead: a backfill by Windlass and by what people use instead, under the load of an
    /// application
    #[arg(long, conflicts_with = "names")]
    headline: bool,
    /// Write the headline's table and chart into docs/
    #[arg(long, requires = "headline")]
    write: bool,
    /// Be a worker with the handlers of the benchmarks, in a folder with a windlass.toml
    #[arg(long, hide = true)]
    work: bool,
    /// The slots of that worker
    #[arg(long, hide = true, requires = "work")]
    slots: Option<usize>,
}

/// A benchmark. They run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    Sql,
    Handler,
    Command,
    Http,
    Plan,
    Memory,
    Latency,
    Idle,
    Machines,
    Statements,
    Noop,
    Tiny,
    Submit,
    FirstCommit,
    Listeners,
    Process,
    Dashboard,
    Growth,
    Map,
    MapMariadb,
    Export,
    ExportMariadb,
}

impl Name {
    async fn run(self, bench: &Bench, report: &mut Report) -> Result<()> {
        match self {
            Name::Sql => sql::run(bench, report).await,
            Name::Handler => handler::run(bench, report).await,
            Name::Command => command::run(bench, report).await,
            Name::Http => http::run(bench, report).await,
            Name::Plan => plan::run(bench, report).await,
            Name::Memory => memory::run(bench, report).await,
            Name::Latency => latency::run(bench, report).await,
            Name::Idle => idle::run(bench, report).await,
            Name::Machines => machines::run(bench, report).await,
            Name::Statements => statements::run(bench, report).await,
            Name::Noop => noop::run(bench, report).await,
            Name::Tiny => tiny::run(bench, report).await,
            Name::Submit => submit::run(bench, report).await,
            Name::FirstCommit => first_commit::run(bench, report).await,
            Name::Listeners => listeners::run(bench, report).await,
            Name::Process => process::run(bench, report).await,
            Name::Dashboard => dashboard::run(bench, report).await,
            Name::Growth => growth::run(bench, report).await,
            Name::Map => fan_in::on_postgres(bench, What::Map, report).await,
            Name::MapMariadb => fan_in::on_mariadb(bench, What::Map, report).await,
            Name::Export => fan_in::on_postgres(bench, What::Export, report).await,
            Name::ExportMariadb => fan_in::on_mariadb(bench, What::Export, report).await,
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { names, quick, rows, headline, write, work, slots } = Cli::parse();
    if work {
        return work::run(slots).await;
    }
    let bench = Bench::start(Sizes { quick, most: rows });
    if headline {
        return headline::run(&bench, write).await;
    }
    let mut report = Report::default();
    for name in Name::value_variants() {
        if names.is_empty() || names.contains(name) {
            name.run(&bench, &mut report).await?;
        }
    }
    report.print();
    Ok(())
}
