//! Processes that leave: suddenly, and others take up what they held; or in order, and hand it back.

use crate::common::{Data, Place, eventually, slow_raise, text, worked_by};

const ROWS: i64 = 10_000;

async fn prepare() -> (Data, Place) {
    let data = Data::postgres().await.with_accounts(ROWS).await;
    // Slow until what the test is about has happened.
    data.pace(0.2).await;
    let jobs = slow_raise(500) + "chunk.commit = 100\nchunk.lease = \"1s\"\n";
    let place = Place::on(&data, &jobs);
    (data, place)
}

#[tokio::test]
async fn a_second_worker_takes_up_the_chunks_of_a_dead_one() {
    let (data, place) = prepare().await;
    let id = place.submit("RAISE").await;
    let second = place.spawn("worker");
    let first = place.spawn("worker");
    eventually("both hold chunks", async || {
        !place.held_by(&id, first.id()).await.is_empty()
            && !place.held_by(&id, second.id()).await.is_empty()
    })
    .await;
    first.kill9();
    let left = place.held_by(&id, first.id()).await;
    assert!(!left.is_empty());
    data.pace(0.0).await;
    place.completed(&id).await;
    let chunks = place.chunks(&id).await;
    for number in left {
        let chunk = &chunks[number as usize];
        assert!(worked_by(chunk, second.id()), "{chunk:#}");
        assert_eq!(chunk["losses"], 1, "{chunk:#}");
        // Losing a lease is no failure of the work.
        assert_eq!(chunk["attempts"], 0, "{chunk:#}");
    }
    data.raised_once(ROWS).await;
    place.prove(&id).await;
}

#[tokio::test]
async fn a_worker_that_is_asked_to_leave_hands_back_and_says_so() {
    let (data, place) = prepare().await;
    let id = place.submit("RAISE").await;
    let worker = place.spawn("worker");
    place
        .until(&id, "some chunks are done", |job| job["chunks"]["completed"].as_i64() > Some(0))
        .await;
    worker.term();
    let left = worker.wait().await.ok();
    let job = place.job(&id).await;
    let (completed, pending) = (&job["chunks"]["completed"], &job["chunks"]["pending"]);
    assert_eq!(job["chunks"]["processing"], 0, "{job:#}");
    assert!(pending.as_i64() > Some(0), "the job was over: {job:#}");
    assert!(
        left.stderr.contains(&format!("stopped: {completed} chunk")),
        "{completed} were: {}",
        left.stderr
    );
    assert!(left.stderr.contains("handed back, 0 failed, 0 lost"), "{}", left.stderr);

    data.pace(0.0).await;
    let _next = place.spawn("worker");
    place.completed(&id).await;
    assert!(place.chunks(&id).await.iter().all(|chunk| chunk["losses"] == 0));
    data.raised_once(ROWS).await;
    place.prove(&id).await;
}

#[tokio::test]
async fn run_that_is_asked_to_leave_says_how_to_go_on() {
    let (data, place) = prepare().await;
    let run = place.spawn("run RAISE");
    eventually("the job is at work", async || {
        let jobs = place.json("jobs").await;
        jobs[0]["chunks"]["processing"].as_i64() > Some(0)
    })
    .await;
    run.term();
    let left = run.wait().await;
    let id = text(&place.json("jobs").await[0]["id"]);
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(left.stderr.contains("handed back"), "{left:?}");
    assert!(left.stderr.contains(&format!("windlass worker --job {id}")), "{left:?}");
    assert_eq!(place.status(&id).await, "PROCESSING");

    data.pace(0.0).await;
    place.run(&format!("worker --job {id}")).await.ok();
    assert_eq!(place.status(&id).await, "COMPLETED");
    data.raised_once(ROWS).await;
    place.prove(&id).await;
}
