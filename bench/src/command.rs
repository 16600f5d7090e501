//! A `command` step that changes nothing, compared with the same script on a plain pipe.

use crate::report::Report;
use crate::script::{Script, job};
use crate::setup::{Bench, accounts, builder, median, time_job};
use anyhow::Result;
use windlass::Options;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(1_000_000);
    let database = bench.database().await;
    accounts(&database, rows).await;
    let script = Script::prepare()?;
    let lines = script.record(&database, rows).await?;
    let engine = builder(&database, &job("NOTHING", &script.step()))?.connect().await?;
    let (mut alone, mut ours, mut one) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        alone.push(script.time(&lines)?);
        ours.push(time_job(&engine, "NOTHING", Options::default().slots).await?);
        one.push(time_job(&engine, "NOTHING", 1).await?);
    }
    let (alone, ours, one) = (median(alone), median(ours), median(one));
    let detail = |seconds: f64| {
        let rate = |seconds: f64| rows as f64 / seconds;
        format!("{:.0} items/s, the script alone {:.0}", rate(seconds), rate(alone))
    };
    report.at_least("command: against the script on a pipe", alone / ours, 0.8, detail(ours));
    report.note("command: one slot, the same", alone / one, detail(one));
    Ok(())
}
