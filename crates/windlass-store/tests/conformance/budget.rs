//! A job pauses or fails when its failure budget is exceeded.

use serde_json::json;
use windlass_core::{JobStatus, Request};
use windlass_store::NewJob;

use crate::fixture::{StoreFixture, job_with, with_dead};

fn budgeted(budget: serde_json::Value, on_exceeded: &str) -> NewJob {
    let failures = json!({ "failures": { "budget": budget, "on_exceeded": on_exceeded } });
    job_with(failures, Request::new("REFRESH"))
}

async fn complete_with_dead(fixture: &StoreFixture, job: uuid::Uuid, dead: i64) {
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.complete(chunk.lease, &with_dead(dead), &[]).await.unwrap();
    fixture.check(job).await;
}

async fn an_exceeded_budget_pauses_the_job(fixture: StoreFixture) {
    let job = fixture.planned_as(budgeted(json!(4), "pause"), 6).await;
    complete_with_dead(&fixture, job, 4).await;
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    complete_with_dead(&fixture, job, 0).await;
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    complete_with_dead(&fixture, job, 1).await;
    let paused = fixture.job(job).await;
    assert_eq!(paused.status, JobStatus::Paused);
    let error = paused.error.unwrap();
    assert!(error.contains("exceeded: 5 dead letters, 4 allowed"), "{error}");
    assert!(error.contains(&format!("windlass resume {job}")), "{error}");

    assert_eq!(fixture.store.resume(job).await.unwrap(), JobStatus::Processing);
    complete_with_dead(&fixture, job, 3).await;
    assert_eq!(
        fixture.status(job).await,
        JobStatus::Processing,
        "resuming granted another budget of four"
    );
    complete_with_dead(&fixture, job, 1).await;
    assert_eq!(fixture.status(job).await, JobStatus::Paused);
}

async fn an_exceeded_budget_fails_the_job(fixture: StoreFixture) {
    let job = fixture.planned_as(budgeted(json!(4), "fail"), 3).await;
    complete_with_dead(&fixture, job, 5).await;
    let failed = fixture.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("5 dead letters, 4 allowed"));
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.store.retry(job).await.unwrap();
    complete_with_dead(&fixture, job, 1).await;
    complete_with_dead(&fixture, job, 1).await;
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
}

async fn a_budget_exceeded_by_the_last_chunk_completes_or_fails_the_job(fixture: StoreFixture) {
    for (on_exceeded, expected) in [("pause", JobStatus::Completed), ("fail", JobStatus::Failed)] {
        let job = fixture.planned_as(budgeted(json!(0), on_exceeded), 1).await;
        complete_with_dead(&fixture, job, 1).await;
        assert_eq!(fixture.status(job).await, expected);
    }
}

async fn a_percentage_budget_counts_at_least_ten_thousand_items(fixture: StoreFixture) {
    // The percentage is of at least 10,000 items, so two may fail.
    let job = fixture.planned_as(budgeted(json!("0.02%"), "pause"), 3).await;
    complete_with_dead(&fixture, job, 2).await;
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    complete_with_dead(&fixture, job, 1).await;
    assert_eq!(fixture.status(job).await, JobStatus::Paused);
}

both!(
    an_exceeded_budget_pauses_the_job,
    an_exceeded_budget_fails_the_job,
    a_budget_exceeded_by_the_last_chunk_completes_or_fails_the_job,
    a_percentage_budget_counts_at_least_ten_thousand_items,
);
