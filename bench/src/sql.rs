//! `sql` step against one single UPDATE over the same rows.

use crate::report::Report;
use crate::setup::{Bench, accounts, builder, median, time_job};
use anyhow::Result;
use std::time::Instant;

const JOBS: &str = "[jobs.RAISE]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = amount + 1 WHERE {chunk}\"\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(2_000_000);
    let (mut single, mut ours) = (Vec::new(), Vec::new());
    // Turn about, so that a machine that slows down slows both.
    for _ in 0..3 {
        let database = bench.database().await;
        accounts(&database, rows).await;
        let begun = Instant::now();
        database.run("UPDATE accounts SET amount = amount + 1").await;
        single.push(begun.elapsed());

        accounts(&database, rows).await;
        let engine = builder(&database, JOBS)?.connect().await?;
        ours.push(time_job(&engine, "RAISE").await?);
    }
    let (single, ours) = (median(single), median(ours));
    let detail =
        format!("{:.0} rows/s, one UPDATE {:.0} rows/s", rows as f64 / ours, rows as f64 / single);
    report.at_least("sql: rows/s against one single UPDATE", single / ours, 1.0, detail);
    Ok(())
}
