//! Pause, resume and retry; commands that the status does not allow are refused.

use std::time::Duration;

use windlass_core::problem::Code;
use windlass_core::{JobId, JobStatus};
use windlass_store::{JobFilter, LeaseStatus, StoreError};

use crate::fixture::{LIMIT, StoreFixture, by, done, last_page, new_job, scan};

async fn a_job_is_paused_and_resumed(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    assert_eq!(fixture.store.pause(job, Some("maintenance")).await.unwrap(), JobStatus::Paused);
    let paused = fixture.job(job).await;
    assert_eq!((paused.error.as_deref(), paused.phase), (Some("maintenance"), None));
    assert_eq!(fixture.store.confirm(&[chunk.lease]).await.unwrap(), [LeaseStatus::HandBack]);
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.check(job).await;
    assert_eq!(fixture.store.resume(job).await.unwrap(), JobStatus::Processing);
    assert_eq!(fixture.job(job).await.error, None);
    assert_eq!(fixture.lease(job, 2).await.len(), 1);
    fixture.check(job).await;
}

async fn a_queued_job_resumes_as_queued(fixture: StoreFixture) {
    let job = fixture.submit().await;
    fixture.store.pause(job, None).await.unwrap();
    assert!(fixture.store.lease_segments(&by(), 1).await.unwrap().is_empty());
    assert_eq!(fixture.store.resume(job).await.unwrap(), JobStatus::Queued);
    assert_eq!(fixture.store.lease_segments(&by(), 1).await.unwrap().len(), 1);
    fixture.check(job).await;
}

async fn a_page_is_committed_while_the_job_is_paused(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    fixture.store.pause(job, None).await.unwrap();
    let page = last_page(plan.lease, plan.state, scan(10), crate::fixture::cut(1));
    fixture.store.commit_page(page).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Paused);
    fixture.check(job).await;
    fixture.store.resume(job).await.unwrap();
    assert_eq!(fixture.lease(job, 1).await.len(), 1);
}

fn refused(outcome: windlass_store::Result<JobStatus>, code: Code) -> String {
    match outcome {
        Err(StoreError::Problem(problem)) if problem.code == code => problem.detail,
        other => panic!("not refused with {code:?}: {other:?}"),
    }
}

async fn illegal_commands_are_refused_with_the_reason(fixture: StoreFixture) {
    let store = &fixture.store;
    let queued = fixture.submit().await;
    assert!(refused(store.resume(queued).await, Code::Status).contains("PAUSED"));
    assert!(refused(store.retry(queued).await, Code::Status).contains("FAILED"));

    let completed = fixture.planned(0).await;
    let text = refused(store.cancel(completed).await, Code::Status);
    assert!(text.contains("cannot go from COMPLETED to CANCELLED"), "{text}");
    refused(store.pause(completed, None).await, Code::Status);
    refused(store.resume(completed).await, Code::Status);
    refused(store.retry(completed).await, Code::Status);

    let paused = fixture.submit().await;
    store.pause(paused, None).await.unwrap();
    refused(store.pause(paused, None).await, Code::Status);
    refused(store.retry(paused).await, Code::Status);

    let cancelled = fixture.submit().await;
    store.cancel(cancelled).await.unwrap();
    for _ in 0..2 {
        refused(store.cancel(cancelled).await, Code::Status);
        refused(store.pause(cancelled, None).await, Code::Status);
        refused(store.resume(cancelled).await, Code::Status);
        refused(store.retry(cancelled).await, Code::Status);
    }
    for job in [queued, completed, paused, cancelled] {
        fixture.check(job).await;
    }
}

async fn commands_for_an_unknown_job_are_refused(fixture: StoreFixture) {
    let id: JobId = new_job().id;
    refused(fixture.store.pause(id, None).await, Code::NotFound);
    refused(fixture.store.resume(id).await, Code::NotFound);
    refused(fixture.store.cancel(id).await, Code::NotFound);
    refused(fixture.store.retry(id).await, Code::NotFound);
}

async fn a_retried_job_without_failures_ends(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let chunks = fixture.lease(job, 2).await;
    // The job fails with its first chunk. Its other chunk completes after that.
    fixture.store.fail(chunks[0].lease, &done(0), "bad", true, &[]).await.unwrap();
    fixture.complete(&chunks[1]).await.unwrap();
    fixture.check(job).await;
    fixture.store.retry(job).await.unwrap();
    let chunk = fixture.lease(job, 2).await.remove(0);
    fixture.complete(&chunk).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    fixture.check(job).await;
}

async fn a_suspended_job_type_is_not_leased_and_shows_the_reason(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let job_type = fixture.job(job).await.job_type;
    let suspend = |wait| fixture.store.suspend(&job_type, "the endpoint is down", wait);
    suspend(LIMIT).await.unwrap();
    assert!(fixture.lease(job, 1).await.is_empty());
    let suspended = fixture.job(job).await;
    assert_eq!(suspended.error.as_deref(), Some("the endpoint is down"));
    let listed =
        fixture.store.jobs(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!(listed[0].error, suspended.error);
    // Planning continues, and so do other job types.
    fixture.store.suspend("OTHER", "x", LIMIT).await.unwrap();
    let other = fixture.submit().await;
    assert_eq!(fixture.store.lease_segments(&by(), 1).await.unwrap()[0].lease.job, other);

    fixture.run("UPDATE windlass_controls SET suspended_until = NULL").await;
    assert_eq!(fixture.job(job).await.error, None);
    assert_eq!(fixture.lease(job, 2).await.len(), 2);
    fixture.check(job).await;
}

async fn a_longer_suspension_is_kept(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let job_type = fixture.job(job).await.job_type;
    assert!(fixture.store.suspend(&job_type, "long", LIMIT).await.unwrap());
    assert!(!fixture.store.suspend(&job_type, "short", Duration::from_millis(1)).await.unwrap());
    assert_eq!(fixture.job(job).await.error.as_deref(), Some("long"));
}

both!(
    a_job_is_paused_and_resumed,
    a_queued_job_resumes_as_queued,
    a_page_is_committed_while_the_job_is_paused,
    illegal_commands_are_refused_with_the_reason,
    commands_for_an_unknown_job_are_refused,
    a_suspended_job_type_is_not_leased_and_shows_the_reason,
    a_longer_suspension_is_kept,
    a_retried_job_without_failures_ends,
);
