//! Retention deletes old jobs, and nothing that may still be needed.

use std::time::Duration;

use windlass_core::{DeadLetterStatus, JobId, JobStatus};
use windlass_store::DeadLetterFilter;

use crate::dead_letters::{begin, dead, letter, redrive};
use crate::fixture::{StoreFixture, by, done, old};

const NOW: Duration = Duration::ZERO;
const LONG_AGO: Duration = Duration::from_secs(3600);

/// A completed job with this many chunks.
async fn completed(fixture: &StoreFixture, chunks: usize) -> JobId {
    let job = fixture.planned(chunks).await;
    for chunk in fixture.lease(job, chunks as u32).await {
        fixture.complete(&chunk).await.unwrap();
    }
    job
}

async fn failed(fixture: &StoreFixture) -> JobId {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "no", false, &[]).await.unwrap();
    job
}

async fn prunable(fixture: &StoreFixture, age: Duration) -> Vec<JobId> {
    fixture.store.prunable(&old("REFRESH", age, &by().connections)).await.unwrap()
}

async fn expired(fixture: &StoreFixture, age: Duration) -> Vec<JobId> {
    fixture.store.expired(&old("REFRESH", age, &by().connections)).await.unwrap()
}

async fn remove(fixture: &StoreFixture, job: JobId) -> u64 {
    assert!(fixture.store.close_job(job, NOW).await.unwrap());
    fixture.store.remove_job(job).await.unwrap()
}

async fn deleting_chunks_keeps_the_sums_of_the_job(fixture: StoreFixture) {
    let job = completed(&fixture, 3).await;
    assert_eq!(fixture.store.job_types().await.unwrap(), ["REFRESH"]);
    assert!(prunable(&fixture, LONG_AGO).await.is_empty());
    assert!(
        fixture.store.prunable(&old("OTHER", NOW, &by().connections)).await.unwrap().is_empty()
    );
    assert_eq!(prunable(&fixture, NOW).await, [job]);
    let before = fixture.job(job).await;
    assert_eq!(fixture.store.remove_chunks(job).await.unwrap(), 3);
    assert_eq!(fixture.job(job).await, before);
    assert!(fixture.chunks(job).await.is_empty());
    assert!(fixture.store.segments(job).await.unwrap().is_empty());
    assert!(prunable(&fixture, NOW).await.is_empty(), "it is pruned already");
    assert_eq!(fixture.store.remove_chunks(job).await.unwrap(), 0);
}

async fn a_failed_job_keeps_its_chunks_until_it_is_closed(fixture: StoreFixture) {
    let job = failed(&fixture).await;
    assert!(prunable(&fixture, NOW).await.is_empty(), "it may be retried");
    assert!(expired(&fixture, LONG_AGO).await.is_empty());
    assert_eq!(expired(&fixture, NOW).await, [job]);
    assert!(fixture.store.close_job(job, NOW).await.unwrap());
    let refused = fixture.store.retry(job).await.unwrap_err().to_string();
    assert!(refused.contains("submit it again"), "{refused}");
    assert_eq!(fixture.store.remove_job(job).await.unwrap(), 1);
    assert_eq!(fixture.store.job(job).await.unwrap(), None);
}

async fn a_closed_job_is_deleted_with_all_its_rows(fixture: StoreFixture) {
    let job = dead(&fixture, &[letter(1, "bad")]).await;
    fixture.store.set_throughput(&job.to_string(), Some(1), None).await.unwrap();
    fixture
        .store
        .mark_dead_letters(&DeadLetterFilter::default(), DeadLetterStatus::Ignored)
        .await
        .unwrap();
    let other = completed(&fixture, 1).await;
    assert!(!fixture.store.close_job(job, LONG_AGO).await.unwrap(), "not yet");
    assert_eq!(fixture.store.remove_job(job).await.unwrap(), 1, "its chunk");
    assert!(fixture.store.job(job).await.unwrap().is_some(), "it was not closed");
    assert_eq!(remove(&fixture, job).await, 0);
    assert_eq!(fixture.store.job(job).await.unwrap(), None);
    assert!(fixture.store.controls().await.unwrap().is_empty());
    assert!(fixture.store.dead_letters(&DeadLetterFilter::default()).await.unwrap().is_empty());
    fixture.check(other).await;
}

async fn a_job_that_has_not_ended_is_neither_prunable_nor_closed(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    assert_eq!(fixture.lease(job, 1).await.len(), 1);
    for cancelled in [false, true] {
        assert_eq!(fixture.status(job).await, JobStatus::Processing);
        assert!(prunable(&fixture, NOW).await.is_empty());
        assert!(expired(&fixture, NOW).await.is_empty());
        assert!(!fixture.store.close_job(job, NOW).await.unwrap());
        // A cancelled job ends when its leased chunk is fenced.
        if !cancelled {
            fixture.store.cancel(job).await.unwrap();
        }
    }
    let ending = fixture.store.lease_cancelled(&by(), 1).await.unwrap();
    fixture.store.end_cancelled(ending[0].lease, &done(0), &[]).await.unwrap();
    assert_eq!(prunable(&fixture, NOW).await, [job]);
}

async fn a_job_with_a_new_letter_is_kept(fixture: StoreFixture) {
    let job = dead(&fixture, &[letter(1, "bad")]).await;
    assert!(expired(&fixture, NOW).await.is_empty());
    assert_eq!(prunable(&fixture, NOW).await, [job], "its chunks are prunable nevertheless");
    assert!(fixture.store.prunable(&old("REFRESH", NOW, &[])).await.unwrap().is_empty());
    assert!(
        !fixture.store.close_job(job, NOW).await.unwrap(),
        "it is looked at again under its lock"
    );
    fixture
        .store
        .mark_dead_letters(&DeadLetterFilter::default(), DeadLetterStatus::Ignored)
        .await
        .unwrap();
    assert_eq!(expired(&fixture, NOW).await, [job]);
}

async fn a_deleted_redrive_releases_its_letters(fixture: StoreFixture) {
    let job = dead(&fixture, &[letter(1, "bad")]).await;
    let (redriving, _) = redrive(&fixture, job, &DeadLetterFilter::default()).await.unwrap();
    let chunk = begin(&fixture, redriving).await;
    fixture.store.fail(chunk.lease, &done(0), "no", false, &[]).await.unwrap();
    assert_eq!(expired(&fixture, NOW).await, [redriving]);
    remove(&fixture, redriving).await;
    let again = redrive(&fixture, job, &DeadLetterFilter::default()).await;
    assert_eq!(again.unwrap().1, 1, "the letter is released");
}

async fn letters_are_deleted_by_age_unless_being_redriven(fixture: StoreFixture) {
    let job = dead(&fixture, &[letter(1, "bad"), letter(2, "worse")]).await;
    let only = DeadLetterFilter { error: Some("worse".to_owned()), ..DeadLetterFilter::default() };
    redrive(&fixture, job, &only).await.unwrap();
    assert_eq!(fixture.store.remove_dead_letters("REFRESH", LONG_AGO).await.unwrap(), 0);
    assert_eq!(fixture.store.remove_dead_letters("OTHER", NOW).await.unwrap(), 0);
    assert_eq!(fixture.store.remove_dead_letters("REFRESH", NOW).await.unwrap(), 1);
    let left = fixture.store.dead_letters(&DeadLetterFilter::default()).await.unwrap();
    assert_eq!(left.iter().map(|letter| letter.error.as_str()).collect::<Vec<_>>(), ["worse"]);
}

both!(
    deleting_chunks_keeps_the_sums_of_the_job,
    a_failed_job_keeps_its_chunks_until_it_is_closed,
    a_closed_job_is_deleted_with_all_its_rows,
    a_job_that_has_not_ended_is_neither_prunable_nor_closed,
    a_job_with_a_new_letter_is_kept,
    a_deleted_redrive_releases_its_letters,
    letters_are_deleted_by_age_unless_being_redriven,
);
