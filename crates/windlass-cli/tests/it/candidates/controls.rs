//! Throughput changes while candidates are processed, stopping planning and processing, and cancelling queued work.

use crate::candidates::fixture::{CandidatesFixture, HANDLER};
use crate::common::eventually;
use serde_json::Value as Json;

const AT_WORK: &str = "SELECT (SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING') \
                       + (SELECT count(*) FROM windlass_segments WHERE status = 'PROCESSING')";

fn some_is_done(job: &Json) -> bool {
    job["items"]["processed"].as_i64() > Some(0)
}

#[tokio::test]
async fn throughput_can_be_changed_while_a_job_runs() {
    let fixture = CandidatesFixture::new(3000).await;
    // So slow that it would take an hour and a half.
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate 1 --concurrency 1").await.ok();
    let id = fixture.sandbox.submit("REFRESH_CANDIDATES").await;
    let _workers = [fixture.sandbox.spawn("worker"), fixture.sandbox.spawn("worker")];
    fixture.sandbox.until(&id, "some is done", some_is_done).await;
    let said = fixture.sandbox.run("throughput").await.ok().stdout;
    assert!(said.contains("REFRESH_CANDIDATES"), "{said}");
    let lift = "throughput REFRESH_CANDIDATES --rate unlimited --concurrency unlimited";
    fixture.sandbox.run(lift).await.ok();
    fixture.sandbox.completed(&id).await;
    assert_eq!(fixture.at_version(2, "true").await, 3000);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn the_batch_size_is_a_line_in_the_configuration() {
    for (commit, most) in [("1 ", 1), ("10 ", 10)] {
        let fixture = CandidatesFixture::new(50).await;
        fixture.generate("--originals --candidates 50").await;
        fixture.edit("chunk.commit = 10 ", &format!("chunk.commit = {commit}"));
        let tee = format!("[\"sh\", \"-c\", \"tee -a batches | {HANDLER}\"]");
        fixture.edit(&format!("[\"{HANDLER}\"]"), &tee);
        fixture.complete("MIGRATE_CANDIDATES").await;
        let batches = fixture.sandbox.read("batches");
        let sizes = batches.lines().map(|line| {
            let batch: Json = serde_json::from_str(line).unwrap();
            batch["items"].as_array().unwrap().len()
        });
        assert_eq!(sizes.max(), Some(most));
        assert_eq!(fixture.at_version(2, "document ? 'title'").await, 50);
    }
}

#[tokio::test]
async fn a_stopped_job_type_is_not_planned_until_it_is_started() {
    let fixture = CandidatesFixture::new(1000).await;
    fixture.sandbox.run("stop").await.ok();
    let id = fixture.sandbox.submit("REFRESH_CANDIDATES").await;
    let _worker = fixture.sandbox.spawn("worker");
    eventually("a worker is there", async || {
        fixture.sandbox.json("workers").await.as_array().unwrap().len() == 1
    })
    .await;
    // Another job type is worked when only this one is stopped, so the worker has looked.
    fixture.sandbox.run("stop REFRESH_CANDIDATES").await.ok();
    fixture.sandbox.run("start").await.ok();
    let periods = fixture.sandbox.submit("REFRESH_PERIODS").await;
    fixture.sandbox.completed(&periods).await;
    let job = fixture.sandbox.job(&id).await;
    assert_eq!((&job["status"], &job["chunks"]["total"]), (&"QUEUED".into(), &0.into()), "{job:#}");
    assert_eq!(fixture.at_version(1, "true").await, 1000);
    fixture.sandbox.run("start REFRESH_CANDIDATES").await.ok();
    fixture.sandbox.completed(&id).await;
    assert_eq!(fixture.at_version(2, "true").await, 1000);
}

#[tokio::test]
async fn a_job_stopped_in_the_middle_continues_after_the_start() {
    let fixture = CandidatesFixture::new(3000).await;
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate 50").await.ok();
    let id = fixture.sandbox.submit("REFRESH_CANDIDATES").await;
    let _workers = [fixture.sandbox.spawn("worker"), fixture.sandbox.spawn("worker")];
    fixture.sandbox.until(&id, "some is done", some_is_done).await;
    fixture.sandbox.run("stop REFRESH_CANDIDATES").await.ok();
    eventually("nothing is at work", async || fixture.number(AT_WORK).await == 0).await;
    let done = fixture.at_version(2, "true").await;
    assert!(done < 3000, "it was done before the stop");
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate unlimited").await.ok();
    assert_eq!(fixture.at_version(2, "true").await, done);
    fixture.sandbox.run("start REFRESH_CANDIDATES").await.ok();
    fixture.sandbox.completed(&id).await;
    assert_eq!(fixture.at_version(2, "true").await, 3000);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_queued_job_can_be_cancelled() {
    let fixture = CandidatesFixture::new(3000).await;
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate 50").await.ok();
    let id = fixture.sandbox.submit("REFRESH_CANDIDATES").await;
    let worker = fixture.sandbox.spawn("worker");
    fixture.sandbox.until(&id, "some is done", some_is_done).await;
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    fixture.sandbox.until(&id, "CANCELLED", |job| job["status"] == "CANCELLED").await;
    drop(worker);
    let done = fixture.at_version(2, "true").await;
    assert!(done < 3000, "it was done before");
    assert_eq!(fixture.at_version(1, "true").await, 3000 - done, "each is whole");
    // The same again does all of them.
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate unlimited").await.ok();
    fixture.complete("REFRESH_CANDIDATES").await;
    assert_eq!(fixture.at_version(3, "true").await, done);
    assert_eq!(fixture.at_version(2, "true").await, 3000 - done);
}
