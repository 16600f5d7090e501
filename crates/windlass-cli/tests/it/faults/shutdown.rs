//! Workers that die, whose chunks others take over, and workers that shut down and hand their chunks back.

use crate::common::{CliSandbox, Data, eventually, slow_raise, text, worked_by};

const ROWS: i64 = 10_000;

async fn prepare() -> (Data, CliSandbox) {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    // Slow until the tested event has happened.
    data.pace(2.0).await;
    let jobs = slow_raise(500) + "chunk.commit = 100\nchunk.lease = \"1m\"\n";
    let sandbox = CliSandbox::on(&data, &jobs);
    (data, sandbox)
}

#[tokio::test]
async fn a_second_worker_takes_over_the_chunks_of_a_dead_one() {
    let (data, sandbox) = prepare().await;
    let id = sandbox.submit("RAISE").await;
    let second = sandbox.spawn("worker");
    let first = sandbox.spawn("worker");
    eventually("both have leased chunks", async || {
        !sandbox.held_by(&id, first.id()).await.is_empty()
            && !sandbox.held_by(&id, second.id()).await.is_empty()
    })
    .await;
    first.kill9();
    let left = sandbox.held_by(&id, first.id()).await;
    assert!(!left.is_empty());
    data.pace(0.0).await;
    sandbox.completed(&id).await;
    let chunks = sandbox.chunks(&id).await;
    for number in left {
        let chunk = &chunks[number as usize];
        assert!(worked_by(chunk, second.id()), "{chunk:#}");
        assert_eq!(chunk["losses"], 1, "{chunk:#}");
        // A lost lease is not a failed attempt.
        assert_eq!(chunk["attempts"], 0, "{chunk:#}");
    }
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_worker_that_shuts_down_hands_its_chunks_back_and_logs_it() {
    let (data, sandbox) = prepare().await;
    let (id, worker) = sandbox.worked(|job| job["chunks"]["completed"].as_i64() > Some(0)).await;
    worker.term();
    let left = worker.wait().await.ok();
    let job = sandbox.job(&id).await;
    let (completed, pending) = (&job["chunks"]["completed"], &job["chunks"]["pending"]);
    assert_eq!(job["chunks"]["processing"], 0, "{job:#}");
    assert!(pending.as_i64() > Some(0), "the job was over: {job:#}");
    assert!(
        left.stderr.contains(&format!("stopped: {completed} chunk")),
        "{completed} were: {}",
        left.stderr
    );
    assert!(left.stderr.contains("handed back, 0 failed, 0 taken over"), "{}", left.stderr);

    data.pace(0.0).await;
    let _next = sandbox.spawn("worker");
    sandbox.completed(&id).await;
    assert!(sandbox.chunks(&id).await.iter().all(|chunk| chunk["losses"] == 0));
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn run_prints_how_to_continue_when_it_is_interrupted() {
    let (data, sandbox) = prepare().await;
    let run = sandbox.spawn("run RAISE");
    eventually("the job is at work", async || {
        let jobs = sandbox.json("jobs").await;
        jobs[0]["chunks"]["processing"].as_i64() > Some(0)
    })
    .await;
    run.term();
    let left = run.wait().await;
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    assert_eq!(left.code, Some(130), "{left:?}");
    assert!(left.stderr.contains("interrupted, whose commits are kept"), "{left:?}");
    assert!(left.stderr.contains(&format!("windlass worker --job {id}")), "{left:?}");
    assert_eq!(sandbox.status(&id).await, "PROCESSING");

    data.pace(0.0).await;
    sandbox.run(&format!("worker --job {id}")).await.ok();
    assert_eq!(sandbox.status(&id).await, "COMPLETED");
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}
