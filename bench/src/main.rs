//! The bench: every figure is a ratio within one run, on a PostgreSQL with fsync on that this
//! program starts and stops itself. `cargo xtask bench [NAME …] [--quick]`.

mod command;
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
mod planned;
mod posts;
mod python;
mod report;
mod script;
mod served;
mod setup;
mod sql;
mod statements;
mod submit;

use anyhow::Result;
use report::Report;
use setup::Bench;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let wanted = |name: &str| {
        let mut names = arguments.iter().filter(|argument| !argument.starts_with("--")).peekable();
        names.peek().is_none() || names.any(|argument| argument == name)
    };
    let bench = Bench::start(quick);
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
    report.print();
    Ok(())
}
