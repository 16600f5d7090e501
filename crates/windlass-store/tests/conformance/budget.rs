//! A job stops by itself when too many of its items die.

use serde_json::json;
use windlass_core::{JobStatus, Request};
use windlass_store::{Kept, NewJob};

use crate::bench::{Bench, job_with, with_dead};

both!(
    an_exceeded_budget_pauses_the_job,
    an_exceeded_budget_fails_the_job,
    the_last_chunk_completes_or_fails,
    a_share_is_taken_of_the_items,
);

fn budgeted(budget: serde_json::Value, on_exceeded: &str) -> NewJob {
    let failures = json!({ "failures": { "budget": budget, "on_exceeded": on_exceeded } });
    job_with(failures, Request::new("REFRESH"))
}

async fn complete_with_dead(bench: &Bench, job: uuid::Uuid, dead: i64) {
    let chunk = bench.claim(job, 1).await.remove(0);
    let kept = bench.store.complete(chunk.lease, &with_dead(dead), &[]).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    bench.check(job).await;
}

async fn an_exceeded_budget_pauses_the_job(bench: Bench) {
    let job = bench.loaded_as(budgeted(json!(4), "pause"), 6).await;
    complete_with_dead(&bench, job, 4).await;
    assert_eq!(bench.status(job).await, JobStatus::Processing);
    complete_with_dead(&bench, job, 0).await;
    assert_eq!(bench.status(job).await, JobStatus::Processing);
    complete_with_dead(&bench, job, 1).await;
    let paused = bench.job(job).await;
    assert_eq!(paused.status, JobStatus::Paused);
    let error = paused.error.unwrap();
    assert!(error.contains("exceeded: 5 dead letters, 4 allowed"), "{error}");
    assert!(error.contains(&format!("windlass resume {job}")), "{error}");

    assert_eq!(bench.store.resume(job).await.unwrap(), JobStatus::Processing);
    complete_with_dead(&bench, job, 3).await;
    assert_eq!(bench.status(job).await, JobStatus::Processing, "it was granted another four");
    complete_with_dead(&bench, job, 1).await;
    assert_eq!(bench.status(job).await, JobStatus::Paused);
}

async fn an_exceeded_budget_fails_the_job(bench: Bench) {
    let job = bench.loaded_as(budgeted(json!(4), "fail"), 3).await;
    complete_with_dead(&bench, job, 5).await;
    let failed = bench.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("5 dead letters, 4 allowed"));
    assert!(bench.claim(job, 1).await.is_empty());
    bench.store.retry(job).await.unwrap();
    complete_with_dead(&bench, job, 1).await;
    complete_with_dead(&bench, job, 1).await;
    assert_eq!(bench.status(job).await, JobStatus::Completed);
}

async fn the_last_chunk_completes_or_fails(bench: Bench) {
    for (on_exceeded, expected) in [("pause", JobStatus::Completed), ("fail", JobStatus::Failed)] {
        let job = bench.loaded_as(budgeted(json!(0), on_exceeded), 1).await;
        complete_with_dead(&bench, job, 1).await;
        assert_eq!(bench.status(job).await, expected);
    }
}

async fn a_share_is_taken_of_the_items(bench: Bench) {
    // Of at least ten thousand items, so that two may die.
    let job = bench.loaded_as(budgeted(json!("0.02%"), "pause"), 3).await;
    complete_with_dead(&bench, job, 2).await;
    assert_eq!(bench.status(job).await, JobStatus::Processing);
    complete_with_dead(&bench, job, 1).await;
    assert_eq!(bench.status(job).await, JobStatus::Paused);
}
