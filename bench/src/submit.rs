//! Submitting over HTTP compared with inserting the same rows with pgbench, each 64 at a time.

use crate::posts::{Posts, Sent};
use crate::report::Report;
use crate::served::Served;
use crate::setup::{Bench, RAISE, accounts, settle};
use crate::statements;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use tokio::process::Command;
use windlass_testkit::Database;

const CLIENTS: usize = 64;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let submits = usize::try_from(bench.rows(20_000))?;
    let script = tempfile::NamedTempFile::new()?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let database = bench.database().await;
        let served = idle(&database).await?;
        posts(&served, 1).await?;
        std::fs::write(script.path(), insert(&database).await)?;
        settle(&database).await;
        ours.push(posts(&served, submits).await?);
        // The server would lock the tables in another order than TRUNCATE does.
        drop(served);
        database.run("TRUNCATE windlass_jobs CASCADE").await;
        settle(&database).await;
        bare.push(pgbench(&database, script.path(), submits / CLIENTS).await?);
    }
    ours.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
    bare.sort_by(f64::total_cmp);
    let (ours, bare): (&Sent, f64) = (&ours[1], bare[1]);
    let detail = format!(
        "{:.0} submits/s, pgbench {bare:.0}; p50 {:.1} ms, p99 {:.1} ms",
        ours.rate(),
        ours.millis(0.5),
        ours.millis(0.99)
    );
    report.at_least("submit: jobs per second over HTTP", ours.rate(), 5000.0, detail.clone());
    report.note("submit: over HTTP against pgbench", ours.rate() / bare, detail);
    // What the server did meanwhile, counted apart because counting costs time.
    let counting = bench.counting();
    let database = counting.database().await;
    database.run("CREATE EXTENSION pg_stat_statements").await;
    let served = idle(&database).await?;
    posts(&served, 1).await?;
    database.run("SELECT pg_stat_statements_reset()").await;
    posts(&served, submits).await?;
    statements::costly(&database, (submits as u64, "submit"), report).await
}

/// A server whose workers are stopped, so that only submitting is measured.
async fn idle(database: &Database) -> Result<Served> {
    accounts(database, 10).await;
    let served = Served::start(database, RAISE, &[]).await?;
    served.run(&["stop"]).await;
    Ok(served)
}

/// Submits this many jobs.
async fn posts(served: &Served, times: usize) -> Result<Sent> {
    let posts = Posts::of("/api/v1/jobs", &served.token, r#"{"jobType":"RAISE"}"#, times);
    posts.send(served.port, CLIENTS.min(times)).await
}

/// A transaction with the rows that a submit writes, copied from a real one, and the notification.
async fn insert(database: &Database) -> String {
    // A colon would begin a pgbench variable.
    let text = r"replace(replace(replace(value, '\', '\\'), '''', ''''''), ':', '\x3a')";
    let like_the_first = |table: &str, key: &str, value: &str| {
        format!(
            "SELECT 'INSERT INTO {table} (' || string_agg(key, ', ') || ') VALUES (' || string_agg(
                 CASE key WHEN '{key}' THEN '{value}' ELSE 'E''' || {text} || '''' END, ', ') || ')'
             FROM (SELECT to_jsonb(t) AS row FROM {table} t LIMIT 1) AS one, jsonb_each_text(row)
             WHERE value IS NOT NULL AND key <> 'created_at'"
        )
    };
    let job = like_the_first("windlass_jobs", "id", "gen_random_uuid()");
    let segment = like_the_first("windlass_segments", "job_id", ":id");
    let (job, segment): (String, String) = (database.one(&job).await, database.one(&segment).await);
    format!(
        "BEGIN;\n{job} RETURNING id \\gset\n{segment};\nSELECT pg_notify('windlass', '');\nCOMMIT;\n"
    )
}

/// Runs a script `times` times per client. Returns transactions per second.
async fn pgbench(database: &Database, script: &Path, times: usize) -> Result<f64> {
    let clients = CLIENTS.to_string();
    let output = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-j", "2", "-c", &clients, "-t", &times.to_string(), "-f"])
        .arg(script)
        .arg(database.url())
        .output()
        .await
        .context("pgbench does not start")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rate| rate.split_whitespace().next());
    Ok(rate.context("pgbench says no rate")?.parse()?)
}
