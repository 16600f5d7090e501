//! A run during which all processes of a contender are killed ten times, and what is wrong afterwards.

use super::Killed;
use super::bystander::Bystander;
use super::contender::{Contender, Tools};
use super::lineitem::{self, Lineitem};
use super::processes::POLL;
use crate::setup::{Bench, settle};
use anyhow::Result;
use rand::Rng;
use std::time::{Duration, Instant};

const KILLS: usize = 10;
/// The mean time that the processes work until the next kill, in seconds.
const SHORTEST: f64 = 0.2;
const LONGEST: f64 = 0.8;

/// Runs a contender that processes `rate` rows per second if it is not killed.
pub(super) async fn run(
    bench: &Bench,
    table: &Lineitem,
    tools: &Tools,
    contender: Contender,
    rate: f64,
) -> Result<Killed> {
    // Enough rows that the last kill is in the middle of the work, and four lines per order.
    let enough = ((rate * LONGEST * 1.5 * KILLS as f64) as u64).next_multiple_of(4);
    let rows = enough.min(table.rows);
    let pause = (rows as f64 / rate / (KILLS as f64 + 2.0)).clamp(SHORTEST, LONGEST);
    let database = table.copy(bench).await;
    let mut run = contender.prepare(tools, &database, rows).await?;
    settle(&database).await;
    let bystander = Bystander::start(&database, table.rows)?;
    run.start().await?;
    let mut kills = 0;
    while kills < KILLS && !run.ended().await? {
        // At any point of its work, but not before it has begun.
        let pause = Duration::from_secs_f64(pause * rand::rng().random_range(0.5..1.5));
        let until = Instant::now() + contender.time_to_start() + pause;
        while Instant::now() < until && !run.ended().await? {
            tokio::time::sleep(POLL).await;
        }
        if !run.ended().await? {
            run.kill().await?;
            kills += 1;
            run.start().await?;
        }
    }
    run.wait().await?;
    drop(run);
    bystander.stop().await?;
    let (lost, doubled) = lineitem::wrong(&database, rows).await?;
    table.drop(database).await;
    Ok(Killed { kills, rows, lost, doubled })
}
