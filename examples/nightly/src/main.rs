//! Runs the nights of this example on servers of its own and prints what was measured beside what
//! was asked for: once as it is, and once while five reads of a hundred fail.

mod command;
mod criteria;
mod night;
mod servers;

use std::process::ExitCode;

use anyhow::{Context, bail};

/// Transactions where nothing is said: enough for a first look.
const ROWS: u64 = 1_000_000;
/// As many as the generator makes.
const MOST_ROWS: u64 = 10_000_000;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let rows = rows(std::env::args().skip(1))?;
    let servers = servers::start(rows).await?;
    let calm = night::run(&servers, night::Weather::Calm).await?;
    let rough = night::run(&servers, night::Weather::FailingReads).await?;
    let met = criteria::print(rows, &calm, &rough);
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn rows(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<u64> {
    let rows = match (arguments.next().as_deref(), arguments.next(), arguments.next()) {
        (None, ..) => ROWS,
        (Some("--rows"), Some(rows), None) => {
            rows.replace(['_', ','], "").parse().with_context(|| format!("--rows {rows}"))?
        }
        _ => bail!("usage: cargo xtask nightly [--rows N]"),
    };
    if !(1..=MOST_ROWS).contains(&rows) {
        bail!("--rows {rows}: 1 to {MOST_ROWS} would be right");
    }
    Ok(rows)
}
