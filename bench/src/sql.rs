//! An `sql` step compared with a single UPDATE over the same rows.

use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, builder, median, time_job};
use anyhow::Result;
use std::time::Instant;
use windlass::Options;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(2_000_000);
    let (mut single, mut two, mut default) = (Vec::new(), Vec::new(), Vec::new());
    // In turn, so that a machine that slows down affects both sides.
    for _ in 0..3 {
        let database = bench.database().await;
        accounts(&database, rows).await;
        let begun = Instant::now();
        database.run("UPDATE accounts SET amount = amount + 1").await;
        single.push(begun.elapsed());
        for (slots, times) in [(2, &mut two), (Options::default().slots, &mut default)] {
            accounts(&database, rows).await;
            let engine = builder(&database, RAISE)?.connect().await?;
            times.push(time_job(&engine, "RAISE", slots).await?);
        }
    }
    let single = median(single);
    let figures =
        [("sql: two slots against one UPDATE", two), ("sql: default slots, the same", default)];
    for (what, times) in figures {
        let ours = median(times);
        let (rate, one) = (rows as f64 / ours, rows as f64 / single);
        let detail = format!("{rate:.0} rows/s, one UPDATE {one:.0} rows/s");
        report.at_least(what, single / ours, 1.0, detail);
    }
    Ok(())
}
