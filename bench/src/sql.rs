//! An `sql` step compared with a single UPDATE over the same rows, and with loops inside the server.

use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, builder, median, time_job};
use anyhow::Result;
use std::time::{Duration, Instant};
use windlass::Options;
use windlass_testkit::Database;

/// Rows per commit of the loops, and of the job type with small chunks.
const SMALL: u64 = 1000;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(2_000_000);
    let small = format!("{RAISE}chunk.items = {SMALL}\n");
    let slots = Options::default().slots;
    let jobs = [(RAISE, slots), (&small, slots), (RAISE, 2)];
    let (mut single, mut loops) = (Vec::new(), Vec::new());
    let mut ours: [Vec<Duration>; 3] = Default::default();
    // In turn, so that a machine that slows down affects all of them.
    for _ in 0..3 {
        let database = bench.database().await;
        accounts(&database, rows).await;
        let begun = Instant::now();
        database.run("UPDATE accounts SET amount = amount + 1").await;
        single.push(begun.elapsed());
        accounts(&database, rows).await;
        loops.push(two_loops(&database, rows).await?);
        for ((job, slots), times) in jobs.iter().zip(&mut ours) {
            accounts(&database, rows).await;
            let engine = builder(&database, job)?.connect().await?;
            times.push(time_job(&engine, "RAISE", *slots).await?);
        }
    }
    let single = median(single);
    let detail = |seconds: f64| {
        let (rate, one) = (rows as f64 / seconds, rows as f64 / single);
        format!("{rate:.0} rows/s, one UPDATE {one:.0} rows/s")
    };
    let [default, small, two] = ours.map(median);
    report.at_least("sql: against one UPDATE", single / default, 1.5, detail(default));
    report.at_least("sql: chunks of 1,000, the same", single / small, 1.35, detail(small));
    report.note("sql: two slots, the same", single / two, detail(two));
    let loops = median(loops);
    report.note("sql: two loops in the server, the same", single / loops, detail(loops));
    Ok(())
}

/// Two sessions that each update half of the table and commit often: the limit of what a client can reach.
async fn two_loops(database: &Database, rows: u64) -> Result<Duration> {
    let looped = |from: u64, to: u64| {
        format!(
            "DO $$ BEGIN FOR done IN {from}..{to} BY {SMALL} LOOP
                 UPDATE accounts SET amount = amount + 1
                 WHERE id > done AND id <= least(done + {SMALL}, {to});
                 COMMIT;
             END LOOP; END $$"
        )
    };
    let (one, two) = (database.client().await, database.client().await);
    let (first, second) = (looped(0, rows / 2), looped(rows / 2, rows));
    let begun = Instant::now();
    tokio::try_join!(one.batch_execute(&first), two.batch_execute(&second))?;
    Ok(begun.elapsed())
}
