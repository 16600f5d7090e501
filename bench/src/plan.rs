//! Planning: cutting a table into chunks, compared with counting it by the same index.

use crate::planned;
use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, builder, median};
use anyhow::Result;
use std::time::Instant;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(10_000_000);
    let database = bench.database().await;
    accounts(&database, rows).await;
    let engine = builder(&database, RAISE)?.connect().await?;
    let (mut counted, mut planned_in) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let client = database.client().await;
        client.batch_execute("SET enable_seqscan = off").await?;
        let begun = Instant::now();
        client.query_one("SELECT count(*) FROM accounts", &[]).await?;
        counted.push(begun.elapsed());
        let (id, took) = planned::cut(&engine, "RAISE").await?;
        planned_in.push(took);
        engine.cancel(id).await?;
    }
    let (counted, planned_in) = (median(counted), median(planned_in));
    let detail = format!("{rows} rows: planned in {planned_in:.2} s, counted in {counted:.2} s");
    report.at_most("plan: time against count(*) by the index", planned_in / counted, 1.5, detail);
    Ok(())
}
