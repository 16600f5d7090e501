//! People pause, resume and retry; moves that the table of edges lacks are refused.

use std::time::Duration;

use windlass_core::problem::Code;
use windlass_core::{JobId, JobStatus};
use windlass_store::{JobFilter, Kept, Standing, StoreError};

use crate::bench::{Bench, LIMIT, by, done, last_page, new_job, scan};

both!(
    a_job_is_paused_and_goes_on,
    a_queued_job_resumes_as_queued,
    a_page_in_flight_is_kept_while_paused,
    illegal_moves_are_refused_by_name,
    an_unknown_job_cannot_be_steered,
    a_held_job_type_is_not_claimed_and_says_why,
    a_longer_hold_stands,
    a_retried_job_without_failures_ends,
);

async fn a_job_is_paused_and_goes_on(bench: Bench) {
    let job = bench.loaded(2).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    assert_eq!(bench.store.pause(job, Some("lunch")).await.unwrap(), JobStatus::Paused);
    let paused = bench.job(job).await;
    assert_eq!((paused.error.as_deref(), paused.phase), (Some("lunch"), None));
    assert_eq!(bench.store.confirm(&[chunk.lease]).await.unwrap(), [Standing::HandBack]);
    assert!(bench.claim(job, 1).await.is_empty());
    bench.check(job).await;
    assert_eq!(bench.store.resume(job).await.unwrap(), JobStatus::Processing);
    assert_eq!(bench.job(job).await.error, None);
    assert_eq!(bench.claim(job, 2).await.len(), 1);
    bench.check(job).await;
}

async fn a_queued_job_resumes_as_queued(bench: Bench) {
    let job = bench.submit().await;
    bench.store.pause(job, None).await.unwrap();
    assert!(bench.store.claim_segments(&by(), 1).await.unwrap().is_empty());
    assert_eq!(bench.store.resume(job).await.unwrap(), JobStatus::Queued);
    assert_eq!(bench.store.claim_segments(&by(), 1).await.unwrap().len(), 1);
    bench.check(job).await;
}

async fn a_page_in_flight_is_kept_while_paused(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    bench.store.pause(job, None).await.unwrap();
    let page = last_page(plan.lease, plan.state, scan(10), crate::bench::cut(1));
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Paused);
    bench.check(job).await;
    bench.store.resume(job).await.unwrap();
    assert_eq!(bench.claim(job, 1).await.len(), 1);
}

fn refused(outcome: windlass_store::Result<JobStatus>, code: Code) -> String {
    match outcome {
        Err(StoreError::Problem(problem)) if problem.code == code => problem.detail,
        other => panic!("not refused with {code:?}: {other:?}"),
    }
}

async fn illegal_moves_are_refused_by_name(bench: Bench) {
    let store = &bench.store;
    let queued = bench.submit().await;
    assert!(refused(store.resume(queued).await, Code::Status).contains("PAUSED"));
    assert!(refused(store.retry(queued).await, Code::Status).contains("FAILED"));

    let completed = bench.loaded(0).await;
    let text = refused(store.cancel(completed).await, Code::Status);
    assert!(text.contains("cannot go from COMPLETED to CANCELLED"), "{text}");
    refused(store.pause(completed, None).await, Code::Status);
    refused(store.resume(completed).await, Code::Status);
    refused(store.retry(completed).await, Code::Status);

    let paused = bench.submit().await;
    store.pause(paused, None).await.unwrap();
    refused(store.pause(paused, None).await, Code::Status);
    refused(store.retry(paused).await, Code::Status);

    let cancelled = bench.submit().await;
    store.cancel(cancelled).await.unwrap();
    for _ in 0..2 {
        refused(store.cancel(cancelled).await, Code::Status);
        refused(store.pause(cancelled, None).await, Code::Status);
        refused(store.resume(cancelled).await, Code::Status);
        refused(store.retry(cancelled).await, Code::Status);
    }
    for job in [queued, completed, paused, cancelled] {
        bench.check(job).await;
    }
}

async fn an_unknown_job_cannot_be_steered(bench: Bench) {
    let id: JobId = new_job().id;
    refused(bench.store.pause(id, None).await, Code::NotFound);
    refused(bench.store.resume(id).await, Code::NotFound);
    refused(bench.store.cancel(id).await, Code::NotFound);
    refused(bench.store.retry(id).await, Code::NotFound);
}

async fn a_retried_job_without_failures_ends(bench: Bench) {
    let job = bench.loaded(2).await;
    let chunks = bench.claim(job, 2).await;
    // The job fails with its first chunk, and only then its other chunk completes.
    let failed = bench.store.fail(chunks[0].lease, &done(0), "bad", true, &[]).await.unwrap();
    assert_eq!(failed, Kept::Yes);
    assert_eq!(bench.complete(&chunks[1]).await, Kept::Yes);
    bench.check(job).await;
    bench.store.retry(job).await.unwrap();
    let chunk = bench.claim(job, 2).await.remove(0);
    assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
    bench.check(job).await;
}

async fn a_held_job_type_is_not_claimed_and_says_why(bench: Bench) {
    let job = bench.loaded(2).await;
    let job_type = bench.job(job).await.job_type;
    let hold = |wait| bench.store.hold(&job_type, "the endpoint is down", wait);
    hold(LIMIT).await.unwrap();
    assert!(bench.claim(job, 1).await.is_empty());
    let held = bench.job(job).await;
    assert_eq!(held.error.as_deref(), Some("the endpoint is down"));
    let listed = bench.store.jobs(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed[0].error, held.error);
    // Loading goes on, and so do other types.
    bench.store.hold("OTHER", "x", LIMIT).await.unwrap();
    let other = bench.submit().await;
    assert_eq!(bench.store.claim_segments(&by(), 1).await.unwrap()[0].lease.job, other);

    bench.run("UPDATE windlass_controls SET suspended_until = NULL").await;
    assert_eq!(bench.job(job).await.error, None);
    assert_eq!(bench.claim(job, 2).await.len(), 2);
    bench.check(job).await;
}

async fn a_longer_hold_stands(bench: Bench) {
    let job = bench.loaded(1).await;
    let job_type = bench.job(job).await.job_type;
    assert!(bench.store.hold(&job_type, "long", LIMIT).await.unwrap());
    assert!(!bench.store.hold(&job_type, "short", Duration::from_millis(1)).await.unwrap());
    assert_eq!(bench.job(job).await.error.as_deref(), Some("long"));
}
