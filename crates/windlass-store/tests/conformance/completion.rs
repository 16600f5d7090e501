//! Ends of chunks, and of the job with its last chunk.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use windlass_core::{ChunkStatus, JobStatus, Request};
use windlass_store::HandBack;

use crate::fixture::{StoreFixture, assert_lost, done, job_with};

async fn a_job_completes_with_its_last_chunk(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    for chunk in fixture.lease(job, 3).await {
        assert_eq!(fixture.status(job).await, JobStatus::Processing);
        fixture.complete(&chunk).await.unwrap();
        fixture.check(job).await;
    }
    let ended = fixture.job(job).await;
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!((ended.items.processed, ended.chunks.completed), (30, 3));
    assert!(ended.finished_at.is_some() && ended.error.is_none());
    let chunk = fixture.chunk(job, 0).await;
    assert_eq!((chunk.counts, chunk.cursor), (done(10).counts, done(10).cursor));
}

async fn a_completion_is_repeatable(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let chunks = fixture.lease(job, 2).await;
    for _ in 0..3 {
        fixture.complete(&chunks[0]).await.unwrap();
        assert_eq!(fixture.status(job).await, JobStatus::Processing);
        fixture.check(job).await;
    }
    // A completed chunk can neither fail nor be handed back.
    let progress = done(0);
    assert_lost(fixture.store.fail(chunks[0].lease, &progress, "late", true, &[]).await);
    let released = fixture
        .store
        .release(chunks[0].lease, &progress, HandBack::new(None, true, Duration::ZERO))
        .await;
    assert_lost(released);
    fixture.complete(&chunks[1]).await.unwrap();
    let finished = fixture.job(job).await.finished_at;
    fixture.complete(&chunks[1]).await.unwrap();
    assert_eq!(fixture.job(job).await.finished_at, finished, "it ended once");
    fixture.check(job).await;
}

async fn several_chunks_complete_in_one_transaction(fixture: StoreFixture) {
    let job = fixture.planned(5).await;
    let chunks = fixture.lease(job, 5).await;
    let (last, first) = chunks.split_last().unwrap();
    let together: Vec<_> = first.iter().map(|chunk| (chunk.lease, done(10))).collect();
    fixture.store.complete_together(&together).await.unwrap();
    fixture.check(job).await;
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    fixture.store.complete_together(&[(last.lease, done(10))]).await.unwrap();
    fixture.check(job).await;
    let ended = fixture.job(job).await;
    assert_eq!((ended.status, ended.items.processed), (JobStatus::Completed, 50));
    assert_eq!(fixture.chunk(job, 0).await.cursor, done(10).cursor);
}

async fn complete_together_changes_nothing_if_one_lease_is_lost(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let chunks = fixture.lease(job, 2).await;
    let mut together: Vec<_> = chunks.iter().map(|chunk| (chunk.lease, done(10))).collect();
    together[1].0.epoch -= 1;
    assert_lost(fixture.store.complete_together(&together).await);
    fixture.check(job).await;
    assert_eq!(fixture.job(job).await.chunks.processing, 2);
}

async fn concurrent_last_completions_end_the_job_once(fixture: StoreFixture) {
    for _ in 0..5 {
        let job = fixture.planned(12).await;
        let chunks = fixture.lease(job, 12).await;
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(chunks.len()));
        let ends = chunks.into_iter().map(|chunk| {
            let (store, barrier) = (fixture.store.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                store.complete(chunk.lease, &done(10), &[]).await.unwrap();
                store.job(chunk.lease.chunk.job).await.unwrap().unwrap().finished_at
            })
        });
        let ends = join_all(ends).await;
        let finished = fixture.job(job).await.finished_at;
        assert!(finished.is_some());
        for seen in ends.into_iter().map(Result::unwrap) {
            // A process that saw the job ended saw the one time at which it ended.
            assert!(seen.is_none() || seen == finished);
        }
        assert_eq!(fixture.status(job).await, JobStatus::Completed);
        fixture.check(job).await;
    }
}

async fn a_job_with_failed_chunks_fails_and_names_them(fixture: StoreFixture) {
    let job = fixture.planned(30).await;
    for chunk in fixture.lease(job, 30).await {
        let number = chunk.lease.chunk.number;
        let kept = match number {
            2 | 17 => {
                let error = format!("bad\0 {number}");
                fixture.store.fail(chunk.lease, &done(4), &error, false, &[]).await
            }
            _ => fixture.complete(&chunk).await,
        };
        kept.unwrap();
    }
    let failed = fixture.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let error = failed.error.unwrap();
    assert!(
        error.starts_with("28/30 chunks completed, failed: [2, 17] (first error: bad"),
        "{error}"
    );
    assert!(error.contains(&format!("windlass retry {job}")), "{error}");
    fixture.check(job).await;
}

async fn a_retry_queues_only_failed_chunks(fixture: StoreFixture) {
    let job = fixture.planned(4).await;
    let chunks = fixture.lease(job, 4).await;
    for chunk in &chunks {
        let kept = match chunk.lease.chunk.number {
            1 => fixture.store.fail(chunk.lease, &done(4), "bad", false, &[]).await,
            _ => fixture.complete(chunk).await,
        };
        kept.unwrap();
    }
    assert_eq!(fixture.store.retry(job).await.unwrap(), JobStatus::Queued);
    let retried = fixture.job(job).await;
    assert_eq!((retried.error, retried.finished_at), (None, None));
    assert_eq!(retried.chunks.pending, 1);
    fixture.check(job).await;

    let again = fixture.lease(job, 4).await;
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].lease.chunk.number, again[0].attempts), (1, 0));
    assert!(again[0].lease.epoch > chunks[1].lease.epoch);
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    // The old lease cannot fail it again.
    assert_lost(fixture.store.fail(chunks[1].lease, &done(4), "bad", false, &[]).await);
    fixture.complete(&again[0]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    fixture.check(job).await;
}

async fn a_chunk_can_fail_its_job_at_once(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let chunks = fixture.lease(job, 2).await;
    for _ in 0..2 {
        fixture.store.fail(chunks[0].lease, &done(0), "no such column", true, &[]).await.unwrap();
    }
    let failed = fixture.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!(failed.error.as_deref(), Some("no such column"));
    assert_eq!((failed.chunks.pending, failed.chunks.processing), (1, 1));
    fixture.check(job).await;

    // The chunk in progress still ends, the first error is kept, and a retry continues with the others.
    fixture.complete(&chunks[1]).await.unwrap();
    assert_eq!(fixture.job(job).await.error.as_deref(), Some("no such column"));
    fixture.check(job).await;
    fixture.store.retry(job).await.unwrap();
    for chunk in fixture.lease(job, 9).await {
        fixture.complete(&chunk).await.unwrap();
    }
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    fixture.check(job).await;
}

async fn a_chunk_can_end_after_its_job_was_paused_or_failed(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.pause(job, None).await.unwrap();
    fixture.complete(&chunk).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Paused, "a paused job ends when resumed");
    fixture.check(job).await;
    assert_eq!(fixture.store.resume(job).await.unwrap(), JobStatus::Completed);
    fixture.check(job).await;

    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.pause(job, None).await.unwrap();
    fixture.store.fail(chunk.lease, &done(0), "bad", true, &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    fixture.check(job).await;
}

async fn sums_of_an_ended_job_are_stored_in_its_row(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    for chunk in fixture.lease(job, 2).await {
        fixture.complete(&chunk).await.unwrap();
    }
    let sql = format!("SELECT processed + completed FROM windlass_jobs WHERE id = '{job}'");
    assert_eq!(fixture.number(&sql).await, 22);
    let completed =
        fixture.store.chunks(job, Some(ChunkStatus::Completed), None, 10).await.unwrap();
    assert_eq!(completed.len(), 2);
    fixture.check(job).await;
}

/// Jobs of one chunk, of which only the first has nothing else to do than to end.
async fn jobs_of_one_chunk_complete_together_unless_more_depends_on_them(fixture: StoreFixture) {
    let parts = json!({ "step": { "export": { "to": "file:out/", "format": "csv" } } });
    let exports = job_with(parts, Request::new("REFRESH"));
    let jobs = [
        fixture.planned(1).await,
        fixture.planned(1).await,
        fixture.planned(2).await,
        fixture.planned(1).await,
        fixture.planned(1).await,
        fixture.planned_as(exports, 1).await,
    ];
    let [_, followed, _, lost, paused, _] = jobs;
    let after = Request { after: Some(vec![followed]), ..Request::new("REFRESH") };
    fixture.store.submit(job_with(json!({}), after)).await.unwrap();
    let mut ends = Vec::new();
    for job in jobs {
        ends.push((fixture.lease(job, 1).await[0].lease, done(10)));
    }
    ends[3].0.epoch += 1;
    fixture.store.pause(paused, None).await.unwrap();
    let before = fixture.job(jobs[0]).await;
    let completed = fixture.store.complete_jobs(&ends).await.unwrap();
    // SQLite has one writer, so that its jobs are completed one by one.
    assert_eq!(completed, [!fixture.is_sqlite(), false, false, false, false, false]);
    for (job, completed) in jobs.into_iter().zip(completed) {
        let shown = fixture.job(job).await;
        assert_eq!(shown.status == JobStatus::Completed, completed, "{shown:?}");
        assert_eq!(shown.finished_at.is_some(), completed, "{shown:?}");
        fixture.check(job).await;
    }
    ends[3].0.epoch -= 1;
    for end in &ends[..4] {
        if fixture.status(end.0.chunk.job).await != JobStatus::Completed {
            fixture.store.complete_together(std::slice::from_ref(end)).await.unwrap();
        }
    }
    let [plain, lost] = [fixture.job(jobs[0]).await, fixture.job(lost).await];
    assert_eq!((plain.items, plain.chunks), (lost.items, lost.chunks), "both ways write the same");
    assert_eq!(plain.started_at, before.started_at);
    fixture.check(jobs[0]).await;
}

both!(
    a_job_completes_with_its_last_chunk,
    a_completion_is_repeatable,
    concurrent_last_completions_end_the_job_once,
    several_chunks_complete_in_one_transaction,
    jobs_of_one_chunk_complete_together_unless_more_depends_on_them,
    complete_together_changes_nothing_if_one_lease_is_lost,
    a_job_with_failed_chunks_fails_and_names_them,
    a_retry_queues_only_failed_chunks,
    a_chunk_can_fail_its_job_at_once,
    a_chunk_can_end_after_its_job_was_paused_or_failed,
    sums_of_an_ended_job_are_stored_in_its_row,
);
