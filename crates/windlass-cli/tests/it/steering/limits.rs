//! Cluster-wide limits, changed while jobs run.

use crate::common::{CliSandbox, Data, eventually, slow_raise};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::task::JoinHandle;

const ROWS: i64 = 6_000;
const AT_WORK: &str = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING'";

/// Records how many chunks are leased at once, from the database.
struct Watch {
    most: Arc<AtomicI64>,
    over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Watch {
    fn begin(data: &Arc<Data>) -> Watch {
        let (most, over) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let (data, seen, end) = (data.clone(), most.clone(), over.clone());
        let task = tokio::spawn(async move {
            while !end.load(Ordering::SeqCst) {
                seen.fetch_max(data.number(AT_WORK).await, Ordering::SeqCst);
            }
        });
        Watch { most, over, task }
    }

    async fn end(self) -> i64 {
        self.over.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        self.most.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_keep_a_concurrency_limit_that_changes() {
    let data = Arc::new(Data::postgres().await.with_accounts(ROWS).await);
    data.pace(0.5).await;
    let jobs = slow_raise(30) + "chunk.commit = 10\nthroughput = { concurrency = 3 }\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    let id = sandbox.submit("RAISE").await;
    let watch = Watch::begin(&data);
    let _workers: Vec<_> = (0..4).map(|_| sandbox.spawn("worker --concurrency 3")).collect();
    sandbox
        .until(&id, "some chunks are completed", |job| {
            job["items"]["processed"].as_i64() > Some(300)
        })
        .await;
    assert_eq!(watch.end().await, 3, "the definition's limit is used and kept");

    sandbox.run("throughput RAISE --concurrency 8").await.ok();
    eventually("eight chunks are leased", async || data.number(AT_WORK).await == 8).await;
    sandbox.run("throughput RAISE --concurrency 1").await.ok();
    eventually("one chunk is leased", async || data.number(AT_WORK).await <= 1).await;
    let watch = Watch::begin(&data);
    let before = sandbox.job(&id).await["items"]["processed"].as_i64();
    sandbox
        .until(&id, "chunks are completed", |job| job["items"]["processed"].as_i64() > before)
        .await;
    assert_eq!(watch.end().await, 1);

    data.pace(0.0).await;
    sandbox.run("throughput RAISE --concurrency unlimited").await.ok();
    sandbox.completed(&id).await;
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn two_processes_share_a_rate_limit_that_can_be_removed() {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    // So slow that it would take ten minutes.
    let jobs = slow_raise(10) + "throughput = { items_per_second = 10 }\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    let id = sandbox.submit("RAISE").await;
    let _workers = [sandbox.spawn("worker"), sandbox.spawn("worker")];
    sandbox.until(&id, "some items are processed", |job| job["items"]["processed"] != 0).await;
    let reserved = "SELECT count(*) FROM windlass_controls WHERE next_at IS NOT NULL";
    assert_eq!(data.number(reserved).await, 1);
    let slow = sandbox.run("throughput RAISE").await.ok();
    assert!(slow.stdout.contains("10"), "{}", slow.stdout);
    sandbox.run("throughput RAISE --rate unlimited").await.ok();
    sandbox.completed(&id).await;
    data.raised_once(ROWS).await;
}
