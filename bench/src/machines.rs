//! Two `windlass worker` processes compared with one, on chunks that mostly wait.

use crate::planned;
use crate::report::Report;
use crate::setup::{Bench, accounts, binary, builder, folder, median};
use anyhow::Result;
use std::time::Duration;
use windlass_testkit::{Database, Windlass};

/// The step waits instead of computing, so that two processes on one machine do not compete for its cores.
const JOBS: &str = "[jobs.WAIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = amount + 1 FROM (SELECT pg_sleep(0.1)) w WHERE {chunk}\"\n\
    chunk.items = 100\n";

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(200_000);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let database = bench.database().await;
        accounts(&database, rows).await;
        one.push(time(&database, 1).await?);
        two.push(time(&database, 2).await?);
    }
    let (one, two) = (median(one), median(two));
    let rate = |seconds: f64| rows as f64 / seconds;
    let detail = format!("{:.0} rows/s, one {:.0}", rate(two), rate(one));
    report.at_least("machines: two processes against one", one / two, 1.9, detail);
    Ok(())
}

async fn time(database: &Database, processes: usize) -> Result<Duration> {
    let engine = builder(database, JOBS)?.connect().await?;
    let (id, _) = planned::cut(&engine, "WAIT").await?;
    let folder = folder(database, database, JOBS)?;
    let windlass = Windlass::new(folder.path()).binary(binary()?);
    let _workers: Vec<_> =
        (0..processes).map(|_| windlass.spawn(["worker", "--concurrency", "8"])).collect();
    planned::worked(database, &id.to_string()).await
}
