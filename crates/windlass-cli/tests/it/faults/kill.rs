//! Workers are killed at random and repeatedly while they work.

use crate::common::seeded_rng::SeededRng;
use crate::common::{CliSandbox, Data, eventually, job, slow_raise};
use std::ops::Range;
use std::time::Duration;

const ROWS: i64 = 200_000;

#[tokio::test]
async fn every_row_is_changed_once_by_three_killed_workers_on_postgresql() {
    let data = Data::slow(ROWS, 0.5).await;
    // Several commits per chunk, so that kills also happen between two of them.
    let jobs = slow_raise(500) + "chunk.commit = 100\nchunk.lease = \"2s\"\n";
    is_changed_once(&data, &jobs, 3, 300..900, 0.02).await;
}

#[tokio::test]
async fn every_row_is_changed_once_by_a_killed_worker_on_sqlite() {
    let data = Data::sqlite().with_accounts(ROWS).await;
    data.pace(500_000.0).await;
    // SQLite has no sleep function, so the statement counts to take time.
    let sql = "UPDATE accounts SET amount = amount + 1 WHERE {chunk} AND (WITH RECURSIVE \
               s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < (SELECT seconds FROM pace)) \
               SELECT count(*) FROM s) > 0";
    let jobs = job("RAISE", sql, 500) + "chunk.commit = 100\nchunk.lease = \"1s\"\n";
    is_changed_once(&data, &jobs, 1, 200..900, 50_000.0).await;
}

#[tokio::test]
async fn every_row_is_changed_once_by_three_killed_workers_on_mariadb() {
    let data = Data::mariadb().await.with_accounts(ROWS).await;
    data.pace(0.005).await;
    // Every row takes time, so that kills also happen within a statement.
    let sql = "UPDATE accounts SET amount = amount + 1 WHERE {chunk} \
               AND SLEEP((SELECT seconds FROM pace)) = 0";
    let jobs = job("RAISE", sql, 500) + "chunk.commit = 100\nchunk.lease = \"2s\"\n";
    is_changed_once(&data, &jobs, 3, 300..900, 0.0002).await;
}

/// How many killed workers must have had leased chunks.
const HITS: usize = 3;

/// Asserts that every row is changed once although workers are killed in these intervals, in milliseconds. The job is too
/// slow to end until enough were killed, and has the pace `fast` from then on.
async fn is_changed_once(data: &Data, jobs: &str, workers: usize, every: Range<u64>, fast: f64) {
    let sandbox = CliSandbox::on(data, jobs);
    let id = sandbox.submit("RAISE").await;
    let enough = async || data.pace(fast).await;
    kill_until_completed(&sandbox, &id, workers, every, enough).await;
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

/// Keeps `workers` workers running and kills one after another until the job is completed. Calls `enough` when enough of
/// them had leased a chunk.
async fn kill_until_completed(
    sandbox: &CliSandbox,
    id: &str,
    workers: usize,
    every: Range<u64>,
    enough: impl AsyncFn(),
) {
    let mut rng = SeededRng::new(20_251_115);
    let mut running: Vec<_> = (0..workers).map(|_| sandbox.spawn("worker")).collect();
    let mut hits = 0;
    // Another test kills planners; this one does not wait for their longer leases.
    sandbox.until(id, "the job is planned", |job| job["phase"] == "working").await;
    loop {
        let victim = &mut running[rng.next_in(0..workers as u64) as usize];
        // A worker that is killed before it has leased a chunk shows nothing, however fast the machine is.
        eventually("the worker has leased a chunk", async || {
            !sandbox.held_by(id, victim.id()).await.is_empty()
                || sandbox.job(id).await["status"] == "COMPLETED"
        })
        .await;
        tokio::time::sleep(Duration::from_millis(rng.next_in(every.clone()))).await;
        victim.kill9();
        let job = sandbox.job(id).await;
        match job["status"].as_str() {
            Some("COMPLETED") => return assert!(hits >= HITS, "only {hits} had leased chunks"),
            Some("QUEUED" | "PROCESSING") => {}
            _ => panic!("{job:#}"),
        }
        // After the kill, the chunks still name the dead worker.
        hits += usize::from(!sandbox.held_by(id, victim.id()).await.is_empty());
        if hits == HITS {
            enough().await;
        }
        *victim = sandbox.spawn("worker");
    }
}
