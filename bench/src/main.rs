//! The bench: every figure is a ratio within one run, on a PostgreSQL with fsync on that this
//! program starts and stops itself. `cargo xtask bench [NAME …] [--quick] [--rows=N]`.

mod command;
mod dashboard;
mod fan_in;
mod first_commit;
mod graphile;
mod handler;
mod http;
mod latency;
mod listeners;
mod load;
mod machines;
mod memory;
mod noop;
mod pages;
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
mod watched;

use anyhow::{Context, Result, bail};
use fan_in::What;
use report::Report;
use setup::{Bench, Sizes};

/// What can be asked for; all of it unless something is.
const NAMES: &str = "sql handler command http load memory latency machines statements noop submit \
                     first-commit listeners process dashboard map map-mariadb export export-mariadb";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let known = |argument: &String| {
        argument == "--quick"
            || argument.starts_with("--rows=")
            || NAMES.split(' ').any(|name| name == argument)
    };
    if let Some(unknown) = arguments.iter().find(|argument| !known(argument)) {
        bail!(
            "{unknown}: cargo xtask bench [NAME …] [--quick] [--rows=N], of these names: {NAMES}"
        );
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let wanted = |name: &str| {
        let mut names = arguments.iter().filter(|argument| !argument.starts_with("--")).peekable();
        names.peek().is_none() || names.any(|argument| argument == name)
    };
    let most = arguments.iter().find_map(|argument| argument.strip_prefix("--rows="));
    let most = most.map(|rows| rows.parse().context("--rows=N takes a number")).transpose()?;
    let bench = Bench::start(Sizes { quick, most });
    let mut report = Report::default();
    if wanted("sql") {
        sql::run(&bench, &mut report).await?;
    }
    if wanted("handler") {
        handler::run(&bench, &mut report).await?;
    }
    if wanted("command") {
        command::run(&bench, &mut report).await?;
    }
    if wanted("http") {
        http::run(&bench, &mut report).await?;
    }
    if wanted("load") {
        load::run(&bench, &mut report).await?;
    }
    if wanted("memory") {
        memory::run(&bench, &mut report).await?;
    }
    if wanted("latency") {
        latency::run(&bench, &mut report).await?;
    }
    if wanted("machines") {
        machines::run(&bench, &mut report).await?;
    }
    if wanted("statements") {
        statements::run(&bench, &mut report).await?;
    }
    if wanted("noop") {
        noop::run(&bench, &mut report).await?;
    }
    if wanted("submit") {
        submit::run(&bench, &mut report).await?;
    }
    if wanted("first-commit") {
        first_commit::run(&bench, &mut report).await?;
    }
    if wanted("listeners") {
        listeners::run(&bench, &mut report).await?;
    }
    if wanted("process") {
        process::run(&bench, &mut report).await?;
    }
    if wanted("dashboard") {
        dashboard::run(&bench, &mut report).await?;
    }
    for (name, what) in [("map", What::Map), ("export", What::Export)] {
        if wanted(name) {
            fan_in::on_postgres(&bench, what, &mut report).await?;
        }
        if wanted(&format!("{name}-mariadb")) {
            fan_in::on_mariadb(&bench, what, &mut report).await?;
        }
    }
    report.print();
    Ok(())
}
