//! The time from submit to the first commit: over HTTP compared with the library, on the same `windlass serve`.

use crate::latency::{JOBS, SUBMITS, Times, first_write, submit};
use crate::posts::Posts;
use crate::report::Report;
use crate::served::Served;
use crate::setup::{Bench, accounts, builder};
use anyhow::{Context, Result};
use windlass::JobId;
use windlass_testkit::Database;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let database = bench.database().await;
    accounts(&database, 10).await;
    let engine = builder(&database, JOBS)?.connect().await?;
    let served = Served::start(&database, JOBS, &[]).await?;
    let (mut over_http, mut by_library) = (Times::default(), Times::default());
    for round in 0..SUBMITS + 5 {
        let http = first_write(&database, &engine, || post(&served, &database)).await?;
        let library = first_write(&database, &engine, || submit(&engine)).await?;
        // The worker is still starting during the first few.
        if round >= 5 {
            over_http.0.push(http);
            by_library.0.push(library);
        }
    }
    let (http, library) = (over_http.at(0.5), by_library.at(0.5));
    let detail = format!("{}; library {}", over_http.said(), by_library.said());
    report.at_most("first-commit: HTTP against library, median", http / library, 1.5, detail);
    Ok(())
}

/// Submits over HTTP on a new connection. The newest job is the submitted one: there is no other submitter.
async fn post(served: &Served, database: &Database) -> Result<JobId> {
    let posts = Posts::of("/api/v1/jobs", &served.token, r#"{"jobType":"TOUCH"}"#, 1);
    posts.send(served.port, 1).await?;
    let newest = "SELECT id::text FROM windlass_jobs ORDER BY created_at DESC LIMIT 1";
    database.one::<String>(newest).await.parse().context("an id")
}
