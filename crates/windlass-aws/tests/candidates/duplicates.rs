//! A duplicate delivery changes nothing.

use crate::fixture::{CandidatesFixture, JOB, Plan, event, failures, refresh};
use serde_json::json;
use windlass_testkit::Moto;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_again_with_any_id_changes_nothing() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(2).await;
    for messages in [
        // Twice in one batch, then again, then as a new message of the same job.
        vec![("m0", refresh("c0")), ("m1", refresh("c0"))],
        vec![("m0", refresh("c0"))],
        vec![("another", refresh("c0"))],
    ] {
        let answer = fixture.process.invoke(event(&messages)).await.unwrap();
        assert_eq!(failures(&answer), [""; 0]);
    }
    let record = fixture.candidate("c0").await;
    assert_eq!((record.version(), record.jobs()), (2, vec![JOB.to_owned()]));
    assert_eq!(fixture.gateway.count("UpdateItem"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_delivered_twice_concurrently_is_written_once() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(20).await;
    let ids: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let messages: Vec<_> = ids.iter().map(|id| (id.as_str(), refresh(id))).collect();
    let messages = event(&messages);
    let invoke = || fixture.process.invoke(messages.clone());
    let (one, two, three) = tokio::join!(invoke(), invoke(), invoke());
    for answer in [one, two, three] {
        assert_eq!(failures(&answer.unwrap()), [""; 0]);
    }
    assert!(fixture.all_candidates().await.values().all(|record| record.version() == 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_event_delivered_twice_is_one_job() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(30).await;
    let start = json!({"version": "0", "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": "StartBatchJob", "source": "windlass",
        "detail": {"jobType": "REFRESH_CANDIDATES", "parallelSegments": 2}});
    fixture.bus.repeat_every(2);
    let one = fixture.start_job(start.clone()).await;
    assert_eq!(fixture.start_job(start).await, one);
    assert!(fixture.mapping().depth().await > 60, "the queue has duplicates");
    fixture.drain().await;
    for (id, record) in fixture.all_candidates().await {
        assert_eq!((record.version(), record.jobs()), (2, vec![one.clone()]), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_stores_its_last_jobs() {
    let plan = Plan { refresh: "queue.remember = 2", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(1).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES", "ids": ["c0"]})).await);
        fixture.drain().await;
    }
    let record = fixture.candidate("c0").await;
    assert_eq!((record.version(), record.jobs()), (4, jobs[1..].to_vec()));
}
