//! A `handler` step with optimistic locking, compared with hand-written Python loops.

use crate::python::Python;
use crate::report::Report;
use crate::setup::{Bench, accounts, builder, median, time_job};
use anyhow::Result;
use serde::Deserialize;
use windlass::{Options, Outcome};

const JOBS: &str = "[jobs.RAISE]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.handler = \"raise\"\nstep.version = \"version\"\n";

#[derive(Deserialize)]
struct Account {
    amount: i64,
}

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(500_000);
    let python = Python::prepare()?;
    let (mut unnest, mut many, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let database = bench.database().await;
        accounts(&database, rows).await;
        unnest.push(python.time(database.url(), "unnest")?);
        accounts(&database, rows).await;
        many.push(python.time(database.url(), "executemany")?);
        accounts(&database, rows).await;
        let engine = builder(&database, JOBS)?
            .handler("raise", |account: Account, _| async move {
                Ok(Outcome::set("amount", account.amount + 1))
            })
            .connect()
            .await?;
        ours.push(time_job(&engine, "RAISE", Options::default().slots).await?);
    }
    let (unnest, many, ours) = (median(unnest), median(many), median(ours));
    let rate = |seconds: f64| rows as f64 / seconds;
    let detail = format!("{:.0} rows/s, the loop {:.0}", rate(ours), rate(unnest));
    report.at_least("handler: against a Python loop with unnest", unnest / ours, 2.5, detail);
    let detail = format!("{:.0} rows/s, the loop {:.0}", rate(ours), rate(many));
    report.at_least("handler: against a Python loop, executemany", many / ours, 3.0, detail);
    Ok(())
}
