//! What a `windlass serve` costs its store while there is nothing to do.

use crate::report::Report;
use crate::served::Served;
use crate::setup::{Bench, RAISE, accounts};
use anyhow::Result;
use std::time::Duration;
use windlass_testkit::Database;

/// Until all loops have found the store without open work, and unused connections are closed.
const SETTLING: Duration = Duration::from_secs(100);
/// A multiple of the longest time between two polls.
const OBSERVED: Duration = Duration::from_secs(60);

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let database = bench.database().await;
    accounts(&database, 10).await;
    let _served = Served::start(&database, RAISE, &[]).await?;
    tokio::time::sleep(SETTLING).await;
    let before = transactions(&database).await;
    tokio::time::sleep(OBSERVED).await;
    // Without the transaction that reads the first figure.
    let made = transactions(&database).await - before - 1;
    let rate = made as f64 / OBSERVED.as_secs_f64();
    let connections: i64 = database
        .one("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .await;
    let detail = format!("{made} transactions in {} s", OBSERVED.as_secs());
    report.at_most("idle: transactions per second of `serve`", rate, 2.0, detail);
    report.at_most("idle: connections of `serve`", connections as f64, 4.0, String::new());
    Ok(())
}

async fn transactions(database: &Database) -> i64 {
    database
        .one("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")
        .await
}
