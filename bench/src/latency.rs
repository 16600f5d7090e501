//! From submit to the first commit of a small job, on an idle `windlass worker`.

use crate::report::Report;
use crate::setup::{Bench, accounts, binary, builder, folder};
use anyhow::Result;
use rand::Rng;
use std::time::{Duration, SystemTime};
use windlass::{Engine, Request};
use windlass_testkit::Windlass;

/// Each row notes when it was written, by the same machine's clock that the submit is taken by.
const JOBS: &str = "[jobs.TOUCH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.sql = \"UPDATE accounts SET amount = (extract(epoch FROM clock_timestamp()) * 1e6)::bigint WHERE {chunk}\"\n";
const SUBMITS: usize = 60;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let database = bench.database().await;
    accounts(&database, 10).await;
    let engine = builder(&database, JOBS)?.connect().await?;
    let folder = folder(&database, &database, JOBS)?;
    let _worker = Windlass::new(folder.path()).binary(binary()?).spawn(["worker"]);
    let mut times = Vec::new();
    for round in 0..SUBMITS + 5 {
        // Random pauses, so that nothing falls into step with a poll.
        let pause = rand::rng().random_range(100..400);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as i64;
        let id = engine.submit(Request::new("TOUCH"), Engine::local_identity()).await?.id();
        crate::setup::wait_completed(&engine, id).await?;
        let written: i64 = database.one("SELECT min(amount) FROM accounts").await;
        // The first few find the worker still starting.
        if round >= 5 {
            times.push(Duration::from_micros(u64::try_from(written - begun)?));
        }
    }
    times.sort();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1000.0;
    let detail = format!("p50 {:.1} ms, p95 {:.1} ms over {SUBMITS} submits", at(0.5), at(0.95));
    report.at_most("latency: submit to first write, median ms", at(0.5), 10.0, detail);
    Ok(())
}
