//! Many workers: the listing shows what each does, and a killed one is detected.

use crate::common::{CliSandbox, Data, eventually, raise, slow_raise};
use serde_json::Value as Json;

async fn listed(sandbox: &CliSandbox) -> Vec<Json> {
    sandbox.json("workers").await.as_array().unwrap().clone()
}

#[tokio::test]
async fn running_workers_are_listed() {
    for (_data, sandbox) in CliSandbox::on_both(10, &raise(5)).await {
        assert!(listed(&sandbox).await.is_empty());
        let worker = sandbox.spawn("worker --concurrency 3");
        eventually("the worker is listed", async || listed(&sandbox).await.len() == 1).await;
        let row = listed(&sandbox).await.remove(0);
        assert_eq!((&row["slots"], &row["vanished"]), (&3.into(), &false.into()), "{row}");
        assert!(sandbox.run("workers").await.ok().stdout.contains("alive"));
        worker.term();
        worker.wait().await.ok();
        assert!(listed(&sandbox).await.is_empty(), "the worker is no longer listed");
    }
}

#[tokio::test]
async fn a_killed_worker_is_detected_and_its_chunks_are_taken_over() {
    let data = Data::slow(10_000, 0.05).await;
    let jobs = slow_raise(50) + "chunk.commit = 10\nchunk.lease = \"1s\"\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    let id = sandbox.submit("RAISE").await;
    let victim = sandbox.spawn("worker --concurrency 2");
    eventually("the worker has leased chunks", async || {
        listed(&sandbox).await.first().is_some_and(|row| row["chunks"] != 0)
    })
    .await;
    victim.kill9();
    data.pace(0.0).await;
    let other = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    data.raised_once(10_000).await;
    // Both run on one host, so the other worker sees that the process has ended.
    eventually("the other worker reports it and removes it from the list", async || {
        let reported = other.stderr().contains("worker process has ended");
        reported && listed(&sandbox).await.len() == 1
    })
    .await;
}

#[tokio::test]
async fn four_processes_complete_ten_thousand_chunks_each_once() {
    let data = Data::slow(20_000, 0.1).await;
    let sandbox = CliSandbox::on(&data, &slow_raise(2));
    let id = sandbox.submit("RAISE --parallel-segments 4").await;
    let workers: Vec<_> = (0..4).map(|_| sandbox.spawn("worker")).collect();
    let by = "SELECT count(DISTINCT worker) FROM windlass_chunks WHERE status = 'COMPLETED'";
    eventually("all four completed chunks", async || data.number(by).await == 4).await;
    data.pace(0.0).await;
    let job = sandbox.completed(&id).await;
    assert_eq!(job["chunks"]["total"], 10_000);
    data.raised_once(20_000).await;
    let again = "SELECT count(*) FROM windlass_chunks WHERE epoch <> losses + 1";
    assert_eq!(data.number(again).await, 0, "no chunk was leased again without a lost lease");
    sandbox.prove(&id).await;
    drop(workers);
}
