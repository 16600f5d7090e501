//! The items of a job are counted once, however often their messages are delivered, and its end is announced.

use crate::fixture::{CandidatesFixture, Plan, migrate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value as Json, json};
use windlass_aws::dead_letters::{self, Which};
use windlass_aws::{JobState, job_progress};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::Moto;
use windlass_testkit::aws::{EventSourceMapping, Moment};

/// A fixture whose jobs are counted, with `good` candidates, three that are skipped and two that fail.
async fn counted(good: usize) -> CandidatesFixture {
    let plan = Plan {
        refresh: "queue.progress = true",
        migrate: "queue.progress = true",
        ..Plan::default()
    };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(good).await;
    for n in 0..3 {
        fixture.put_candidate(&format!("skip{n}"), &[("skip", "yes")]).await;
    }
    for n in 0..2 {
        fixture.put_candidate(&format!("bad{n}"), &[("poison", "yes")]).await;
    }
    fixture
}

async fn state(fixture: &CandidatesFixture, job: &str) -> JobState {
    let config = fixture.config(Moto::shared());
    job_progress(config, job.parse().unwrap()).await.unwrap().unwrap()
}

/// Items in all, processed, skipped and dead.
async fn counts(fixture: &CandidatesFixture, job: &str) -> (Option<u64>, u64, u64, u64) {
    let progress = state(fixture, job).await.progress;
    (progress.total, progress.processed, progress.skipped, progress.dead)
}

/// A mapping that delivers every second batch twice, at the same time as others.
fn unreliable(fixture: &CandidatesFixture) -> EventSourceMapping {
    let mut mapping = fixture.mapping();
    (mapping.batch_size, mapping.concurrency, mapping.repeat_every) = (5, 4, 2);
    mapping
}

async fn repair(fixture: &CandidatesFixture) {
    for n in 0..2 {
        let key = AttributeValue::S(format!("bad{n}"));
        let mend =
            fixture.dynamo.update_item().table_name(&fixture.candidates).key("identifier", key);
        mend.update_expression("REMOVE poison").send().await.unwrap();
    }
}

async fn redrive(fixture: &CandidatesFixture) {
    let dead = fixture.queue(&fixture.dead).await;
    let work = fixture.queue(&fixture.work).await;
    dead_letters::redrive(&dead, &work, &Which::default(), None).await.unwrap();
    fixture.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_counted_once_although_everything_is_delivered_twice() {
    let fixture = counted(40).await;
    fixture.bus.repeat_every(2);
    let request = json!({"jobType": "MIGRATE_CANDIDATES", "idempotencyKey": "night"});
    let job = fixture.start_job(request.clone()).await;
    assert_eq!(fixture.start_job(request).await, job);
    assert_eq!(counts(&fixture, &job).await, (Some(45), 0, 0, 0));
    assert_eq!(state(&fixture, &job).await.plan.segments.len(), 10);
    assert_eq!(fixture.bus.others(), [Json::Null; 0]);

    unreliable(&fixture).drain().await;
    assert_eq!(counts(&fixture, &job).await, (Some(45), 40, 3, 2));
    let progress = state(&fixture, &job).await.progress;
    assert!(progress.is_announced);
    let events = fixture.bus.others();
    let expected = json!({
        "source": "windlass", "detail-type": "BatchJobCompleted", "bus": "bus",
        "detail": {
            "jobId": job, "jobType": "MIGRATE_CANDIDATES", "status": "COMPLETED",
            "items": {"total": 45, "processed": 40, "skipped": 3, "dead": 2},
            "createdAt": progress.created_at, "finishedAt": progress.finished_at,
        },
    });
    assert!(!events.is_empty());
    for event in events {
        assert_eq!(event, expected);
    }
    for (id, record) in fixture.all_candidates().await {
        let is_written = id.starts_with('c');
        assert_eq!(record.version(), if is_written { 2 } else { 1 }, "{id}");
    }

    // A letter that fails again stays counted once. One that succeeds is no longer dead.
    redrive(&fixture).await;
    assert_eq!(counts(&fixture, &job).await, (Some(45), 40, 3, 2));
    repair(&fixture).await;
    redrive(&fixture).await;
    assert_eq!(counts(&fixture, &job).await, (Some(45), 42, 3, 0));
    assert_eq!(state(&fixture, &job).await.progress.finished_at, progress.finished_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_has_the_error_of_its_item() {
    let fixture = counted(3).await;
    fixture.start_job(json!({"jobType": "MIGRATE_CANDIDATES"})).await;
    fixture.drain().await;
    let queue = fixture.queue(&fixture.dead).await;
    let mut letters = dead_letters::list(&queue, &Which::default(), 50).await.unwrap();
    letters.sort_by(|left, right| left.body.cmp(&right.body));
    assert_eq!(letters.len(), 2);
    for (n, letter) in letters.iter().enumerate() {
        let body: Json = serde_json::from_str(&letter.body).unwrap();
        assert_eq!(body, migrate(&format!("bad{n}")));
        assert_eq!((letter.error(), letter.attempts()), (Some("this one is bad"), Some(3)));
        assert!(letter.failed_at().is_some());
    }
    let other = Which { error: Some("another".to_owned()), ..Which::default() };
    assert_eq!(dead_letters::list(&queue, &other, 50).await.unwrap(), []);
    let this = Which { error: Some("is bad".to_owned()), ..Which::default() };
    assert_eq!(dead_letters::list(&queue, &this, 50).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_after_a_commit_counts_its_items_once() {
    let fixture = counted(40).await;
    let job = fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    for after in [1, 4] {
        let process = fixture.process.clone();
        fixture.gateway.at("TransactWriteItems", Moment::After, after, move || {
            for id in process.at_work() {
                kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGKILL).unwrap();
            }
        });
    }
    let mut mapping = fixture.mapping();
    mapping.batch_size = 5;
    mapping.drain().await;
    assert_eq!(counts(&fixture, &job).await, (Some(45), 45, 0, 0));
    assert!(fixture.all_candidates().await.values().all(|record| record.version() == 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_before_the_event_announces_the_end_at_the_next_delivery() {
    let fixture = counted(1).await;
    let job = fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    // The first update is the end of the job; records are written by transactions.
    let process = fixture.process.clone();
    fixture.gateway.at("UpdateItem", Moment::After, 0, move || {
        for id in process.at_work() {
            kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGKILL).unwrap();
        }
    });
    fixture.drain().await;
    assert!(state(&fixture, &job).await.progress.is_announced);
    assert_eq!(fixture.bus.others().len(), 1);
    assert_eq!(counts(&fixture, &job).await, (Some(6), 6, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_items_ends_when_it_is_planned() {
    let fixture = counted(0).await;
    let request = json!({"jobType": "MIGRATE_CANDIDATES", "filter": {"reportingYears": ["1066"]}});
    let job = fixture.start_job(request).await;
    assert_eq!(counts(&fixture, &job).await, (Some(0), 0, 0, 0));
    assert_eq!(fixture.bus.others().len(), 1);
    assert_eq!(fixture.bus.others()[0]["detail"]["jobId"], *job);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_that_had_another_request_is_refused() {
    let fixture = counted(2).await;
    let request = |years: Json| {
        json!({"jobType": "REFRESH_CANDIDATES", "idempotencyKey": "k",
               "filter": {"reportingYears": years}})
    };
    fixture.start_job(request(json!(["2024"]))).await;
    let refused = fixture.start.invoke(request(json!(["2025"]))).await.unwrap_err();
    assert!(format!("{refused:?}").contains("was started with another request"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_moved_by_sqs_itself_is_not_counted_until_it_is_redriven() {
    let fixture = counted(4).await;
    let job = fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES", "ids": ["c0"]})).await;
    // The function dies in all three deliveries.
    for _ in 0..3 {
        let process = fixture.process.clone();
        fixture.gateway.at("BatchGetItem", Moment::Before, 0, move || {
            for id in process.at_work() {
                kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGKILL).unwrap();
            }
        });
    }
    fixture.drain().await;
    assert_eq!(counts(&fixture, &job).await, (Some(1), 0, 0, 0));
    let queue = fixture.queue(&fixture.dead).await;
    let letters = dead_letters::list(&queue, &Which::default(), 50).await.unwrap();
    assert_eq!((letters.len(), letters[0].error()), (1, None));
    redrive(&fixture).await;
    assert_eq!(counts(&fixture, &job).await, (Some(1), 1, 0, 0));
    assert!(state(&fixture, &job).await.progress.is_announced);
}
