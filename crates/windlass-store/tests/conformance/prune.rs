//! What ended long ago is removed, and nothing that somebody may still need.

use std::time::Duration;

use windlass_core::{DeadLetterStatus, JobId, JobStatus};
use windlass_store::{DeadLetterFilter, Kept};

use crate::bench::{Bench, by, done};
use crate::letters::{begin, dead, letter, redrive};

both!(
    chunks_go_and_the_sums_of_their_job_stay,
    a_failed_job_keeps_its_chunks_until_it_is_closed,
    a_closed_job_is_removed_with_everything_of_it,
    what_has_not_ended_is_neither_prunable_nor_closed,
    a_job_with_a_new_letter_stays,
    a_removed_redrive_lets_go_of_its_letters,
    letters_go_by_age_unless_they_are_being_redriven,
);

const NOW: Duration = Duration::ZERO;
const LONG_AGO: Duration = Duration::from_secs(3600);

/// A completed job of so many chunks.
async fn completed(bench: &Bench, chunks: usize) -> JobId {
    let job = bench.loaded(chunks).await;
    for chunk in bench.claim(job, chunks as u32).await {
        assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    }
    job
}

async fn failed(bench: &Bench) -> JobId {
    let job = bench.loaded(1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    assert_eq!(bench.store.fail(chunk.lease, &done(0), "no", false, &[]).await.unwrap(), Kept::Yes);
    job
}

async fn prunable(bench: &Bench, age: Duration) -> Vec<JobId> {
    bench.store.prunable("REFRESH", age, &by().connections, 10).await.unwrap()
}

async fn expired(bench: &Bench, age: Duration) -> Vec<JobId> {
    bench.store.expired("REFRESH", age, &by().connections, 10).await.unwrap()
}

async fn remove(bench: &Bench, job: JobId) -> u64 {
    assert!(bench.store.close(job, NOW).await.unwrap());
    bench.store.remove(job).await.unwrap()
}

async fn chunks_go_and_the_sums_of_their_job_stay(bench: Bench) {
    let job = completed(&bench, 3).await;
    assert_eq!(bench.store.job_types().await.unwrap(), ["REFRESH"]);
    assert!(prunable(&bench, LONG_AGO).await.is_empty());
    assert!(bench.store.prunable("OTHER", NOW, &by().connections, 10).await.unwrap().is_empty());
    assert_eq!(prunable(&bench, NOW).await, [job]);
    let before = bench.job(job).await;
    assert_eq!(bench.store.remove_chunks(job).await.unwrap(), 3);
    assert_eq!(bench.job(job).await, before);
    assert!(bench.chunks(job).await.is_empty());
    assert!(bench.store.segments(job).await.unwrap().is_empty());
    assert!(prunable(&bench, NOW).await.is_empty(), "once is enough");
    assert_eq!(bench.store.remove_chunks(job).await.unwrap(), 0);
}

async fn a_failed_job_keeps_its_chunks_until_it_is_closed(bench: Bench) {
    let job = failed(&bench).await;
    assert!(prunable(&bench, NOW).await.is_empty(), "it may be retried");
    assert!(expired(&bench, LONG_AGO).await.is_empty());
    assert_eq!(expired(&bench, NOW).await, [job]);
    assert!(bench.store.close(job, NOW).await.unwrap());
    let refused = bench.store.retry(job).await.unwrap_err().to_string();
    assert!(refused.contains("submit it again"), "{refused}");
    assert_eq!(bench.store.remove(job).await.unwrap(), 1);
    assert_eq!(bench.store.job(job).await.unwrap(), None);
}

async fn a_closed_job_is_removed_with_everything_of_it(bench: Bench) {
    let job = dead(&bench, &[letter(1, "bad")]).await;
    bench.store.set_throughput(&job.to_string(), Some(1), None).await.unwrap();
    bench
        .store
        .mark_letters(&DeadLetterFilter::default(), DeadLetterStatus::Ignored)
        .await
        .unwrap();
    let other = completed(&bench, 1).await;
    assert!(!bench.store.close(job, LONG_AGO).await.unwrap(), "not yet");
    assert_eq!(bench.store.remove(job).await.unwrap(), 1, "its chunk");
    assert!(bench.store.job(job).await.unwrap().is_some(), "it was not closed");
    assert_eq!(remove(&bench, job).await, 0);
    assert_eq!(bench.store.job(job).await.unwrap(), None);
    assert!(bench.store.controls().await.unwrap().is_empty());
    assert!(bench.store.letters(&DeadLetterFilter::default()).await.unwrap().is_empty());
    bench.check(other).await;
}

async fn what_has_not_ended_is_neither_prunable_nor_closed(bench: Bench) {
    let job = bench.loaded(2).await;
    assert_eq!(bench.claim(job, 1).await.len(), 1);
    for cancelled in [false, true] {
        assert_eq!(bench.status(job).await, JobStatus::Processing);
        assert!(prunable(&bench, NOW).await.is_empty());
        assert!(expired(&bench, NOW).await.is_empty());
        assert!(!bench.store.close(job, NOW).await.unwrap());
        // A cancelled job ends when the chunk that was claimed is fenced.
        if !cancelled {
            bench.store.cancel(job).await.unwrap();
        }
    }
    let ending = bench.store.claim_cancelled(&by(), 1).await.unwrap();
    assert_eq!(bench.store.end_cancelled(ending[0].lease, &done(0), &[]).await.unwrap(), Kept::Yes);
    assert_eq!(prunable(&bench, NOW).await, [job]);
}

async fn a_job_with_a_new_letter_stays(bench: Bench) {
    let job = dead(&bench, &[letter(1, "bad")]).await;
    assert!(expired(&bench, NOW).await.is_empty());
    assert_eq!(prunable(&bench, NOW).await, [job], "its chunks go all the same");
    assert!(bench.store.prunable("REFRESH", NOW, &[], 10).await.unwrap().is_empty());
    assert!(!bench.store.close(job, NOW).await.unwrap(), "it is looked at again under its lock");
    bench
        .store
        .mark_letters(&DeadLetterFilter::default(), DeadLetterStatus::Ignored)
        .await
        .unwrap();
    assert_eq!(expired(&bench, NOW).await, [job]);
}

async fn a_removed_redrive_lets_go_of_its_letters(bench: Bench) {
    let job = dead(&bench, &[letter(1, "bad")]).await;
    let (redriving, _) = redrive(&bench, job, &DeadLetterFilter::default()).await.unwrap();
    let chunk = begin(&bench, redriving).await;
    assert_eq!(bench.store.fail(chunk.lease, &done(0), "no", false, &[]).await.unwrap(), Kept::Yes);
    assert_eq!(expired(&bench, NOW).await, [redriving]);
    remove(&bench, redriving).await;
    let again = redrive(&bench, job, &DeadLetterFilter::default()).await;
    assert_eq!(again.unwrap().1, 1, "the letter is free");
}

async fn letters_go_by_age_unless_they_are_being_redriven(bench: Bench) {
    let job = dead(&bench, &[letter(1, "bad"), letter(2, "worse")]).await;
    let only = DeadLetterFilter { error: Some("worse".to_owned()), ..DeadLetterFilter::default() };
    redrive(&bench, job, &only).await.unwrap();
    assert_eq!(bench.store.remove_letters("REFRESH", LONG_AGO).await.unwrap(), 0);
    assert_eq!(bench.store.remove_letters("OTHER", NOW).await.unwrap(), 0);
    assert_eq!(bench.store.remove_letters("REFRESH", NOW).await.unwrap(), 1);
    let left = bench.store.letters(&DeadLetterFilter::default()).await.unwrap();
    assert_eq!(left.iter().map(|letter| letter.error.as_str()).collect::<Vec<_>>(), ["worse"]);
}
