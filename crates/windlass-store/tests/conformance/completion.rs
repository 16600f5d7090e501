//! Chunks end, and with the last of them the job.

use std::time::Duration;

use futures::future::join_all;
use windlass_core::{ChunkStatus, JobStatus};
use windlass_store::Kept;

use crate::bench::{Bench, done};

both!(
    a_job_completes_with_its_last_chunk,
    a_completion_is_repeatable,
    last_chunks_together_end_the_job_once,
    several_chunks_complete_in_one_go,
    one_lost_chunk_keeps_the_others_from_completing_in_one_go,
    a_job_with_failed_chunks_fails_and_names_them,
    a_retry_runs_only_what_failed,
    a_chunk_can_fail_its_job_at_once,
    a_chunk_ends_whatever_became_of_its_job,
    sums_of_a_job_at_rest_are_on_its_row,
);

async fn a_job_completes_with_its_last_chunk(bench: Bench) {
    let job = bench.loaded(3).await;
    for chunk in bench.claim(job, 3).await {
        assert_eq!(bench.status(job).await, JobStatus::Processing);
        assert_eq!(bench.complete(&chunk).await, Kept::Yes);
        bench.check(job).await;
    }
    let ended = bench.job(job).await;
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!((ended.items.processed, ended.chunks.completed), (30, 3));
    assert!(ended.finished_at.is_some() && ended.error.is_none());
    let chunk = bench.chunk(job, 0).await;
    assert_eq!((chunk.counts, chunk.cursor), (done(10).counts, done(10).cursor));
}

async fn a_completion_is_repeatable(bench: Bench) {
    let job = bench.loaded(2).await;
    let chunks = bench.claim(job, 2).await;
    for _ in 0..3 {
        assert_eq!(bench.complete(&chunks[0]).await, Kept::Yes);
        assert_eq!(bench.status(job).await, JobStatus::Processing);
        bench.check(job).await;
    }
    // Neither another end nor a hand-back follows a completion.
    let progress = done(0);
    let failed = bench.store.fail(chunks[0].lease, &progress, "late", true, &[]).await.unwrap();
    assert_eq!(failed, Kept::Lost);
    let released =
        bench.store.release(chunks[0].lease, &progress, None, true, Duration::ZERO).await;
    assert_eq!(released.unwrap(), Kept::Lost);
    assert_eq!(bench.complete(&chunks[1]).await, Kept::Yes);
    let finished = bench.job(job).await.finished_at;
    assert_eq!(bench.complete(&chunks[1]).await, Kept::Yes);
    assert_eq!(bench.job(job).await.finished_at, finished, "it ended once");
    bench.check(job).await;
}

async fn several_chunks_complete_in_one_go(bench: Bench) {
    let job = bench.loaded(5).await;
    let chunks = bench.claim(job, 5).await;
    let (last, first) = chunks.split_last().unwrap();
    let together: Vec<_> = first.iter().map(|chunk| (chunk.lease, done(10))).collect();
    assert!(bench.store.complete_together(&together).await.unwrap());
    bench.check(job).await;
    assert_eq!(bench.status(job).await, JobStatus::Processing);
    assert!(bench.store.complete_together(&[(last.lease, done(10))]).await.unwrap());
    bench.check(job).await;
    let ended = bench.job(job).await;
    assert_eq!((ended.status, ended.items.processed), (JobStatus::Completed, 50));
    assert_eq!(bench.chunk(job, 0).await.cursor, done(10).cursor);
}

async fn one_lost_chunk_keeps_the_others_from_completing_in_one_go(bench: Bench) {
    let job = bench.loaded(2).await;
    let chunks = bench.claim(job, 2).await;
    let mut together: Vec<_> = chunks.iter().map(|chunk| (chunk.lease, done(10))).collect();
    together[1].0.epoch -= 1;
    assert!(!bench.store.complete_together(&together).await.unwrap());
    bench.check(job).await;
    assert_eq!(bench.job(job).await.chunks.processing, 2);
}

async fn last_chunks_together_end_the_job_once(bench: Bench) {
    for _ in 0..5 {
        let job = bench.loaded(12).await;
        let chunks = bench.claim(job, 12).await;
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(chunks.len()));
        let ends = chunks.into_iter().map(|chunk| {
            let (store, barrier) = (bench.store.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                let kept = store.complete(chunk.lease, &done(10), &[]).await.unwrap();
                (kept, store.job(chunk.lease.chunk.job).await.unwrap().unwrap().finished_at)
            })
        });
        let ends = join_all(ends).await;
        let finished = bench.job(job).await.finished_at;
        assert!(finished.is_some());
        for (kept, seen) in ends.into_iter().map(Result::unwrap) {
            assert_eq!(kept, Kept::Yes);
            // Whoever saw it ended saw it end at the one time it ended.
            assert!(seen.is_none() || seen == finished);
        }
        assert_eq!(bench.status(job).await, JobStatus::Completed);
        bench.check(job).await;
    }
}

async fn a_job_with_failed_chunks_fails_and_names_them(bench: Bench) {
    let job = bench.loaded(30).await;
    for chunk in bench.claim(job, 30).await {
        let number = chunk.lease.chunk.number;
        let kept = match number {
            2 | 17 => {
                let error = format!("bad\0 {number}");
                bench.store.fail(chunk.lease, &done(4), &error, false, &[]).await.unwrap()
            }
            _ => bench.complete(&chunk).await,
        };
        assert_eq!(kept, Kept::Yes);
    }
    let failed = bench.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let error = failed.error.unwrap();
    assert!(error.starts_with("2 of 30 chunks failed: 2, 17 (the first error: bad"), "{error}");
    assert!(error.contains(&format!("windlass retry {job}")), "{error}");
    bench.check(job).await;
}

async fn a_retry_runs_only_what_failed(bench: Bench) {
    let job = bench.loaded(4).await;
    let chunks = bench.claim(job, 4).await;
    for chunk in &chunks {
        let kept = match chunk.lease.chunk.number {
            1 => bench.store.fail(chunk.lease, &done(4), "bad", false, &[]).await.unwrap(),
            _ => bench.complete(chunk).await,
        };
        assert_eq!(kept, Kept::Yes);
    }
    assert_eq!(bench.store.retry(job).await.unwrap(), JobStatus::Queued);
    let retried = bench.job(job).await;
    assert_eq!((retried.error, retried.finished_at), (None, None));
    assert_eq!(retried.chunks.pending, 1);
    bench.check(job).await;

    let again = bench.claim(job, 4).await;
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].lease.chunk.number, again[0].attempts), (1, 0));
    assert!(again[0].lease.epoch > chunks[1].lease.epoch);
    assert_eq!(bench.status(job).await, JobStatus::Processing);
    // The old holder cannot fail it again.
    let late = bench.store.fail(chunks[1].lease, &done(4), "bad", false, &[]).await.unwrap();
    assert_eq!(late, Kept::Lost);
    assert_eq!(bench.complete(&again[0]).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
    bench.check(job).await;
}

async fn a_chunk_can_fail_its_job_at_once(bench: Bench) {
    let job = bench.loaded(3).await;
    let chunks = bench.claim(job, 2).await;
    for _ in 0..2 {
        let failed = bench.store.fail(chunks[0].lease, &done(0), "no such column", true, &[]).await;
        assert_eq!(failed.unwrap(), Kept::Yes);
    }
    let failed = bench.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!(failed.error.as_deref(), Some("no such column"));
    assert_eq!((failed.chunks.pending, failed.chunks.processing), (1, 1));
    bench.check(job).await;

    // The one at work still ends; the first error stays; a retry goes on with the rest.
    assert_eq!(bench.complete(&chunks[1]).await, Kept::Yes);
    assert_eq!(bench.job(job).await.error.as_deref(), Some("no such column"));
    bench.check(job).await;
    bench.store.retry(job).await.unwrap();
    for chunk in bench.claim(job, 9).await {
        assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    }
    assert_eq!(bench.status(job).await, JobStatus::Completed);
    bench.check(job).await;
}

async fn a_chunk_ends_whatever_became_of_its_job(bench: Bench) {
    let job = bench.loaded(1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    bench.store.pause(job, None).await.unwrap();
    assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Paused, "a paused job ends when resumed");
    bench.check(job).await;
    assert_eq!(bench.store.resume(job).await.unwrap(), JobStatus::Completed);
    bench.check(job).await;

    let job = bench.loaded(1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    bench.store.pause(job, None).await.unwrap();
    let failed = bench.store.fail(chunk.lease, &done(0), "bad", true, &[]).await.unwrap();
    assert_eq!(failed, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Failed);
    bench.check(job).await;
}

async fn sums_of_a_job_at_rest_are_on_its_row(bench: Bench) {
    let job = bench.loaded(2).await;
    for chunk in bench.claim(job, 2).await {
        assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    }
    let sql = format!("SELECT processed + completed FROM windlass_jobs WHERE id = '{job}'");
    assert_eq!(bench.number(&sql).await, 22);
    let completed = bench.store.chunks(job, Some(ChunkStatus::Completed), None, 10).await.unwrap();
    assert_eq!(completed.len(), 2);
    bench.check(job).await;
}
