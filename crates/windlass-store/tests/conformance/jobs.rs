//! Submitting and reading jobs.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use windlass_core::problem::Code;
use windlass_core::{JobId, JobStatus, PaginationState, Request};
use windlass_store::{JobFilter, StoreError, Submitted, connect_with};
use windlass_testkit::{PostgresServer, Proxy};

use crate::fixture::{LIMIT, StoreFixture, by, job_with, new_job};

async fn a_job_is_queued_with_its_plan(fixture: StoreFixture) {
    let id = fixture.submit().await;
    let job = fixture.job(id).await;
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!((job.phase, job.started_at, job.finished_at), (None, None, None));
    assert_eq!((job.submitted_by.as_str(), job.priority), ("clerk", 5));
    let segments = fixture.store.segments(id).await.unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].state, PaginationState::Plan);
    fixture.check(id).await;
}

async fn a_job_keeps_what_it_was_submitted_with(fixture: StoreFixture) {
    let request = Request {
        params: [("month".to_owned(), json!("2025-01"))].into(),
        ..Request::new("REFRESH")
    };
    let job = job_with(json!({ "description": "it's \"so\"" }), request);
    fixture.store.submit(job.clone()).await.unwrap();
    let snapshot = fixture.store.snapshot(job.id).await.unwrap().unwrap();
    assert_eq!(snapshot.definition, job.definition);
    assert_eq!(snapshot.request, job.request);
    assert_eq!(snapshot.identity, job.identity);
    assert_eq!((snapshot.id, snapshot.root), (job.id, job.root));
}

async fn a_repeated_submit_gives_the_same_job(fixture: StoreFixture) {
    let job = new_job();
    for _ in 0..2 {
        let submitted = fixture.store.submit(job.clone()).await.unwrap();
        assert_eq!(submitted, Submitted::New(job.id));
    }
    assert_eq!(fixture.store.jobs(&JobFilter::default()).await.unwrap().len(), 1);
    assert_eq!(fixture.store.segments(job.id).await.unwrap().len(), 1);
}

fn keyed(key: &str) -> Request {
    let params = [("a".to_owned(), json!(1)), ("b".to_owned(), json!({ "x": 1, "y": 2 }))];
    Request {
        idempotency_key: Some(key.to_owned()),
        params: params.into(),
        ..Request::new("REFRESH")
    }
}

async fn an_idempotency_key_names_one_job(fixture: StoreFixture) {
    let first = job_with(json!({}), keyed("k"));
    assert_eq!(fixture.store.submit(first.clone()).await.unwrap(), Submitted::New(first.id));
    let mut reordered = keyed("k");
    reordered.params.insert("b".to_owned(), serde_json::from_str(r#"{"y":2,"x":1}"#).unwrap());
    let again = fixture.store.submit(job_with(json!({}), reordered)).await.unwrap();
    assert_eq!(again, Submitted::Existing(first.id));

    let other = Request { priority: Some(9), ..keyed("k") };
    let error = fixture.store.submit(job_with(json!({}), other)).await.unwrap_err();
    let StoreError::Problem(problem) = error else { panic!("{error}") };
    assert_eq!(problem.code, Code::IdempotencyKey);
    assert_eq!(problem.field.as_deref(), Some("idempotencyKey"));
    assert_eq!(fixture.store.jobs(&JobFilter::default()).await.unwrap().len(), 1);
}

async fn an_idempotency_key_is_per_type_and_submitter(fixture: StoreFixture) {
    let long = "k".repeat(10_000);
    let first = job_with(json!({}), keyed(&long));
    let mut by_another = job_with(json!({}), keyed(&long));
    by_another.identity.name = "manager".to_owned();
    let mut of_another_type = job_with(json!({}), keyed(&long));
    of_another_type.definition.name = "OTHER".to_owned();
    for job in [first, by_another, of_another_type] {
        assert_eq!(fixture.store.submit(job.clone()).await.unwrap(), Submitted::New(job.id));
    }
}

async fn concurrent_submits_of_a_key_give_one_job(fixture: StoreFixture) {
    for round in 0..5 {
        let request = keyed(&format!("round {round}"));
        let submits = (0..8).map(|_| {
            let (store, request) = (fixture.store.clone(), request.clone());
            tokio::spawn(async move { store.submit(job_with(json!({}), request)).await.unwrap() })
        });
        let all: Vec<_> = join_all(submits).await.into_iter().map(Result::unwrap).collect();
        let new = all.iter().filter(|submitted| matches!(submitted, Submitted::New(_))).count();
        assert_eq!(new, 1);
        assert!(all.iter().all(|submitted| submitted.id() == all[0].id()));
    }
}

/// PostgreSQL cannot store a zero byte in a text.
const REFUSED: &str = "zero \0 byte";

async fn concurrent_submits_succeed_or_fail_each_by_itself(fixture: StoreFixture) {
    let (first, refused) =
        (job_with(json!({}), keyed("first")), job_with(json!({}), keyed(REFUSED)));
    fixture.store.submit(first.clone()).await.unwrap();
    let mut jobs: Vec<_> = (0..40).map(|_| new_job()).collect();
    jobs.extend([first.clone(), refused.clone(), first.clone()]);
    jobs.extend((0..40).map(|number| job_with(json!({}), keyed(&format!("key {number}")))));
    jobs.push(job_with(json!({}), Request { priority: Some(9), ..keyed("first") }));
    let submits = jobs.iter().map(|job| fixture.store.submit(job.clone()));
    let mut results = join_all(submits).await;
    let other = results.pop().unwrap();
    assert!(matches!(&other, Err(StoreError::Problem(_))), "{other:?}");
    for (job, result) in jobs.iter().zip(&results) {
        let is_kept = fixture.store.job(job.id).await.unwrap().is_some();
        match result {
            Ok(submitted) => assert_eq!((*submitted, is_kept), (Submitted::New(job.id), true)),
            Err(_) => assert_eq!((job.id, is_kept), (refused.id, false)),
        }
    }
}

/// The three transactions of ninety inserts, at most thirty each.
#[tokio::test]
async fn postgres_inserts_jobs_of_concurrent_submits_in_one_transaction() {
    let fixture = StoreFixture::postgres().await;
    join_all((0..90).map(|_| fixture.store.submit(new_job()))).await;
    let transactions = "SELECT count(DISTINCT xmin::text) FROM windlass_jobs";
    assert_eq!(fixture.number(transactions).await, 3);
}

/// A transaction that does not end yet has changed the key of one submit.
#[tokio::test]
async fn postgres_submits_do_not_wait_for_the_key_of_another_one() {
    let fixture = StoreFixture::postgres().await;
    let first = job_with(json!({}), keyed("locked"));
    fixture.store.submit(first.clone()).await.unwrap();
    let mut client = fixture.database().client().await;
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("UPDATE windlass_jobs SET idempotency_key = NULL").await.unwrap();
    let others = (0..20).map(|_| fixture.store.submit(new_job()));
    let waiting = fixture.store.submit(job_with(json!({}), keyed("locked")));
    let unlock = async {
        for submitted in join_all(others).await {
            assert!(matches!(submitted, Ok(Submitted::New(_))), "{submitted:?}");
        }
        transaction.rollback().await.unwrap();
    };
    let ended = tokio::time::timeout(LIMIT, async { tokio::join!(waiting, unlock) }).await;
    let (waited, ()) = ended.expect("the other submits wait for the key");
    assert_eq!(waited.unwrap(), Submitted::Existing(first.id));
}

/// The connection is lost after the server has committed a group, and before its answer.
#[tokio::test]
async fn postgres_finds_the_jobs_of_a_group_whose_commit_was_not_acknowledged() {
    let fixture = StoreFixture::postgres().await;
    let proxy = Proxy::start(PostgresServer::shared().addr()).await;
    let mut settings = fixture.settings.clone();
    settings.url = proxy.url_via(&settings.url);
    let store = connect_with(&settings).await.unwrap();
    proxy.cut_after_commit_of("INSERT INTO windlass_jobs");
    let jobs: Vec<_> = (0..30).map(|_| new_job()).collect();
    let submitted = join_all(jobs.iter().map(|job| store.submit(job.clone()))).await;
    for (job, submitted) in jobs.iter().zip(submitted) {
        assert_eq!(submitted.unwrap(), Submitted::New(job.id));
    }
    assert_eq!(proxy.cuts(), 1);
    let transactions = "SELECT count(DISTINCT xmin::text) FROM windlass_jobs";
    assert_eq!(fixture.number(transactions).await, 1, "each job was inserted by the lost commit");
}

async fn concurrent_reads_return_each_caller_its_job(fixture: StoreFixture) {
    let mut ids = vec![new_job().id];
    for _ in 0..40 {
        ids.push(fixture.submit().await);
    }
    let read = join_all(ids.iter().map(|id| fixture.store.job(*id))).await;
    let read: Vec<_> = read.into_iter().map(|job| job.unwrap().map(|job| job.id)).collect();
    let expected: Vec<_> = ids.iter().map(|id| (*id != ids[0]).then_some(*id)).collect();
    assert_eq!(read, expected);
    let read = join_all(ids.iter().map(|id| fixture.store.snapshot(*id))).await;
    let read: Vec<_> = read.into_iter().map(|job| job.unwrap().map(|job| job.id)).collect();
    assert_eq!(read, expected);
}

async fn jobs_are_listed_newest_first_in_pages(fixture: StoreFixture) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(fixture.submit().await);
    }
    ids.reverse();
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let filter = JobFilter { before, limit: 2, ..JobFilter::default() };
        let page = fixture.store.jobs(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        listed.extend(page.iter().map(|job| job.id));
    }
    assert_eq!(listed, ids);

    fixture.store.lease_segments(&by(), 1).await.unwrap();
    let of = |job_type: &str, status| JobFilter {
        job_type: Some(job_type.to_owned()),
        status,
        ..JobFilter::default()
    };
    let count = async |filter| fixture.store.jobs(&filter).await.unwrap().len();
    assert_eq!(count(of("REFRESH", None)).await, 5);
    assert_eq!(count(of("REFRESH", Some(JobStatus::Processing))).await, 1);
    assert_eq!(count(of("OTHER", None)).await, 0);
}

async fn reading_an_unknown_job_returns_none(fixture: StoreFixture) {
    let id = new_job().id;
    assert!(fixture.store.job(id).await.unwrap().is_none());
    assert!(fixture.store.snapshot(id).await.unwrap().is_none());
    assert!(fixture.chunks(id).await.is_empty());
}

both!(
    time_in_which_a_job_is_paused_does_not_count_as_working_time,
    time_in_which_a_step_or_a_database_is_unavailable_does_not_count_as_working_time,
    a_job_is_queued_with_its_plan,
    a_job_keeps_what_it_was_submitted_with,
    a_repeated_submit_gives_the_same_job,
    an_idempotency_key_names_one_job,
    an_idempotency_key_is_per_type_and_submitter,
    concurrent_submits_of_a_key_give_one_job,
    concurrent_submits_succeed_or_fail_each_by_itself,
    concurrent_reads_return_each_caller_its_job,
    jobs_are_listed_newest_first_in_pages,
    reading_an_unknown_job_returns_none,
);

async fn time_in_which_a_job_is_paused_does_not_count_as_working_time(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    fixture.lease(job, 1).await;
    let past = async |column: &str, seconds| past(&fixture, "jobs", column, seconds).await;
    past("started_at", 100).await;
    let worked = async || worked(&fixture, job).await;
    assert!((100..600).contains(&worked().await), "{}", worked().await);
    fixture.store.pause(job, None).await.unwrap();
    past("started_at", 1000).await;
    past("paused_at", 1000).await;
    assert!((100..600).contains(&worked().await), "paused: {}", worked().await);
    fixture.store.resume(job).await.unwrap();
    assert!((100..600).contains(&worked().await), "resumed: {}", worked().await);
}

/// Moves a time into the past, instead of waiting.
async fn past(fixture: &StoreFixture, table: &str, column: &str, seconds: i64) {
    let earlier = match fixture.is_sqlite() {
        true => format!("{column} - {seconds} * 1000"),
        false => format!("{column} - interval '{seconds} s'"),
    };
    fixture.run(&format!("UPDATE windlass_{table} SET {column} = {earlier}")).await;
}

/// The working time of a job, in seconds.
async fn worked(fixture: &StoreFixture, job: JobId) -> i64 {
    let job = fixture.job(job).await;
    job.working_time(fixture.store.now().await.unwrap()).unwrap().num_seconds()
}

async fn time_in_which_a_step_or_a_database_is_unavailable_does_not_count_as_working_time(
    fixture: StoreFixture,
) {
    const UNAVAILABLE: &str = "database `app` unavailable since 2026-01-01T00:00:00Z: no answer";
    let job = fixture.planned(1).await;
    fixture.lease(job, 1).await;
    past(&fixture, "jobs", "started_at", 100_000).await;
    let worked = async || worked(&fixture, job).await;
    let job_type = fixture.job(job).await.job_type;
    let suspend = async |subject: &str, reason: &str, seconds: u64| {
        let wait = Duration::from_secs(seconds);
        fixture.store.suspend(subject, reason, wait).await.unwrap();
    };
    // A throttled database works, and the step of another job type does not matter.
    suspend("connection:app", "throttled to 1/2 of full speed", 3600).await;
    suspend("OTHER", "no answer", 3600).await;
    past(&fixture, "outages", "began_at", 1000).await;
    assert!((100_000..100_600).contains(&worked().await), "{}", worked().await);
    fixture.run("DELETE FROM windlass_outages").await;

    // A database, whose outage continues and ends.
    suspend("connection:app", UNAVAILABLE, 5).await;
    past(&fixture, "outages", "began_at", 2000).await;
    suspend("connection:app", UNAVAILABLE, 3600).await;
    assert!((98_000..98_600).contains(&worked().await), "{}", worked().await);
    suspend("connection:app", "", 0).await;
    past(&fixture, "jobs", "started_at", 10_000).await;
    assert!((108_000..108_600).contains(&worked().await), "{}", worked().await);

    fixture.run("DELETE FROM windlass_outages").await;

    // A step, whose circuit closes by itself.
    suspend(&job_type, "no answer", 3600).await;
    past(&fixture, "outages", "began_at", 5000).await;
    past(&fixture, "outages", "ended_at", 3600).await;
    assert!((105_000..105_600).contains(&worked().await), "{}", worked().await);

    // Time in which the job was paused as well counts once, and an outage after its end does not count.
    fixture.store.pause(job, None).await.unwrap();
    suspend("connection:app", UNAVAILABLE, 3600).await;
    past(&fixture, "jobs", "paused_at", 1000).await;
    past(&fixture, "jobs", "accounted_at", 1000).await;
    past(&fixture, "outages", "began_at", 1000).await;
    fixture.store.resume(job).await.unwrap();
    assert!((104_000..104_600).contains(&worked().await), "{}", worked().await);
    fixture.store.cancel(job).await.unwrap();
    past(&fixture, "jobs", "accounted_at", 1000).await;
    assert!((104_000..104_600).contains(&worked().await), "{}", worked().await);
}
