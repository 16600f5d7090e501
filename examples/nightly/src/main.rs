//! Runs the nightly jobs of this example on its own servers and prints the measured values beside the required ones:
//! once as they are, and once while five percent of the reads fail. With `--concurrency` it is a load test instead.

mod command;
mod criteria;
mod load;
mod night;
mod redshift;
mod servers;

use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

/// The default number of transactions.
const ROWS: u64 = 1_000_000;
/// The most transactions that the generator makes.
const MAX_ROWS: u64 = 10_000_000;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { rows, concurrency } = Arguments::parse(std::env::args().skip(1))?;
    let servers = servers::start(rows).await?;
    let met = if concurrency.is_empty() {
        let calm = night::run(&servers, night::Weather::Calm).await?;
        let rough = night::run(&servers, night::Weather::FailingReads).await?;
        let redshift = redshift::run(&servers).await?;
        criteria::print(rows, &calm, &rough, &redshift)?
    } else {
        load::run(&servers, rows, &concurrency).await?
    };
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Arguments {
    rows: u64,
    /// The steps of the load test.
    concurrency: Vec<u16>,
}

impl Arguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Arguments> {
        let mut parsed = Arguments { rows: ROWS, concurrency: Vec::new() };
        while let Some(name) = arguments.next() {
            let Some(value) = arguments.next() else { bail!("{name} needs a value") };
            let wrong = || format!("{name} {value}");
            match name.as_str() {
                "--rows" => {
                    parsed.rows = value.replace(['_', ','], "").parse().with_context(wrong)?
                }
                "--concurrency" => {
                    let steps = value.split(',').map(str::parse::<u16>);
                    parsed.concurrency = steps.collect::<Result<_, _>>().with_context(wrong)?;
                }
                _ => bail!("usage: cargo xtask nightly [--rows N] [--concurrency N,N,…]"),
            }
        }
        let (rows, steps) = (parsed.rows, &parsed.concurrency);
        ensure!((1..=MAX_ROWS).contains(&rows), "--rows must be from 1 to {MAX_ROWS}, got {rows}");
        ensure!(!steps.contains(&0), "--concurrency must be at least 1, got 0");
        Ok(parsed)
    }
}
