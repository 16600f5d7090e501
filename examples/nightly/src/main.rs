//! Runs the nightly jobs of this example on its own servers and prints the measured values beside the required ones:
//! once as they are, and once while five percent of the reads fail.

mod command;
mod criteria;
mod night;
mod servers;

use std::process::ExitCode;

use anyhow::{Context, bail};

/// The default number of transactions.
const ROWS: u64 = 1_000_000;
/// The most transactions that the generator makes.
const MOST_ROWS: u64 = 10_000_000;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let rows = rows(std::env::args().skip(1))?;
    let servers = servers::start(rows).await?;
    let calm = night::run(&servers, night::Weather::Calm).await?;
    let rough = night::run(&servers, night::Weather::FailingReads).await?;
    let met = criteria::print(rows, &calm, &rough)?;
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
        bail!("--rows must be between 1 and {MOST_ROWS}, got {rows}");
    }
    Ok(rows)
}
