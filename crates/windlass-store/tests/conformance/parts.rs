//! Parts are kept with the end of their chunk, and merged once all of them are there.

use serde_json::json;
use windlass_core::{JobId, JobStatus, OnFailed, PaginationState, Phase, Request};
use windlass_store::{ClaimedSegment, JobFilter, Kept, MERGED, NewJob, NewPart};

use crate::bench::{Bench, by, done, job_with, last_page, new_job};

both!(
    a_part_is_kept_with_the_end_of_its_chunk,
    the_merge_is_the_last_segment,
    a_failed_chunk_keeps_the_merge_waiting,
    a_merge_that_failed_is_retried,
    a_merger_that_lost_its_segment_keeps_nothing,
    a_job_without_records_is_merged_too,
    a_cancelled_merge_is_over,
    parts_go_with_their_job,
);

fn mapping() -> NewJob {
    let step = json!({"map": "SELECT count(*) AS n FROM {source} WHERE {chunk}"});
    job_with(json!({ "step": step }), Request::new("REFRESH"))
}

fn part(rows: i64) -> NewPart {
    NewPart {
        name: None,
        rows,
        bytes: 3,
        sha256: "a".to_owned(),
        content_hash: "b".to_owned(),
        content: Some(vec![1, 2, rows as u8]),
    }
}

impl Bench {
    /// A job with two chunks, both completed with a part.
    async fn mapped(&self) -> JobId {
        let job = self.loaded_as(mapping(), 2).await;
        for chunk in self.claim(job, 2).await {
            let rows = chunk.lease.chunk.number;
            let kept = self.store.complete_part(chunk.lease, &done(10), &part(rows)).await;
            assert_eq!(kept.unwrap(), Kept::Yes);
        }
        job
    }

    async fn finish_merge(&self, segment: &ClaimedSegment) -> Kept {
        let (from, to) = (PaginationState::Merge, PaginationState::Merge);
        self.store.load(last_page(segment.lease, from, to, Vec::new())).await.unwrap()
    }
}

async fn a_part_is_kept_with_the_end_of_its_chunk(bench: Bench) {
    let job = bench.loaded_as(mapping(), 2).await;
    let chunks = bench.claim(job, 2).await;
    for _ in 0..2 {
        let kept = bench.store.complete_part(chunks[1].lease, &done(10), &part(7)).await;
        assert_eq!(kept.unwrap(), Kept::Yes, "a repeated call is kept too");
    }
    let mut lost = chunks[0].lease;
    lost.epoch += 1;
    let kept = bench.store.complete_part(lost, &done(10), &part(8)).await.unwrap();
    assert_eq!(kept, Kept::Lost);
    let parts = bench.store.parts(job, MERGED, 10).await.unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!((parts[0].chunk, parts[0].epoch, &parts[0].part), (1, 1, &part(7)));
    assert!(bench.store.parts(job, 1, 10).await.unwrap().is_empty());
    bench.check(job).await;
}

async fn the_merge_is_the_last_segment(bench: Bench) {
    let job = bench.mapped().await;
    let shown = bench.job(job).await;
    assert_eq!((shown.status, shown.phase), (JobStatus::Processing, Some(Phase::Merging)));
    bench.check(job).await;
    let segment = bench.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    assert!(bench.store.claim_segments(&by(), 10).await.unwrap().is_empty());
    assert_eq!(bench.store.put_merged(segment.lease, &part(9)).await.unwrap(), Kept::Yes);
    assert_eq!(bench.finish_merge(&segment).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
    let parts = bench.store.parts(job, MERGED - 1, 10).await.unwrap();
    assert_eq!(parts.iter().map(|part| part.chunk).collect::<Vec<_>>(), [MERGED, 0, 1]);
    bench.check(job).await;
}

async fn a_failed_chunk_keeps_the_merge_waiting(bench: Bench) {
    let job = bench.loaded_as(mapping(), 1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    let failed = bench.store.fail(chunk.lease, &done(0), "broken", false, &[]).await;
    assert_eq!(failed.unwrap(), Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Failed);
    assert!(bench.store.claim_segments(&by(), 10).await.unwrap().is_empty());
    bench.store.retry(job).await.unwrap();
    let chunk = bench.claim(job, 1).await.remove(0);
    let kept = bench.store.complete_part(chunk.lease, &done(10), &part(1)).await;
    assert_eq!(kept.unwrap(), Kept::Yes);
    let segment = bench.segment_of(job).await;
    assert_eq!(bench.finish_merge(&segment).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
}

async fn a_merge_that_failed_is_retried(bench: Bench) {
    let job = bench.mapped().await;
    let segment = bench.segment_of(job).await;
    let failed = bench.store.fail_segment(segment.lease, "no such table").await;
    assert_eq!(failed.unwrap(), Kept::Yes);
    let shown = bench.job(job).await;
    assert_eq!(shown.status, JobStatus::Failed);
    assert!(shown.error.unwrap().contains("no such table"));
    bench.store.retry(job).await.unwrap();
    let segment = bench.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    assert_eq!(bench.finish_merge(&segment).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
    bench.check(job).await;
}

async fn a_merger_that_lost_its_segment_keeps_nothing(bench: Bench) {
    let job = bench.mapped().await;
    let old = bench.segment_of(job).await;
    bench.shorten_segment_leases().await;
    assert_eq!(bench.store.rescue().await.unwrap(), 1);
    let new = bench.segment_of(job).await;
    assert_eq!(bench.store.put_merged(old.lease, &part(1)).await.unwrap(), Kept::Lost);
    assert_eq!(bench.finish_merge(&old).await, Kept::Lost);
    assert_eq!(bench.store.put_merged(new.lease, &part(2)).await.unwrap(), Kept::Yes);
    assert_eq!(bench.finish_merge(&new).await, Kept::Yes);
    let merged = bench.store.parts(job, MERGED - 1, 1).await.unwrap().remove(0);
    assert_eq!((merged.epoch, merged.part), (new.lease.epoch, part(2)));
}

async fn a_job_without_records_is_merged_too(bench: Bench) {
    let job = bench.loaded_as(mapping(), 0).await;
    let segment = bench.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    assert_eq!(bench.finish_merge(&segment).await, Kept::Yes);
    assert_eq!(bench.status(job).await, JobStatus::Completed);
}

async fn a_cancelled_merge_is_over(bench: Bench) {
    let unclaimed = bench.mapped().await;
    assert_eq!(bench.store.cancel(unclaimed).await.unwrap(), JobStatus::Cancelled);
    bench.store.discarded(unclaimed).await.unwrap();
    let job = bench.mapped().await;
    let segment = bench.segment_of(job).await;
    // Its load may still commit: the job is not cancelled before that is fenced.
    assert_eq!(bench.store.cancel(job).await.unwrap(), JobStatus::Processing);
    let shown = bench.job(job).await;
    assert_eq!((shown.status, shown.finished_at), (JobStatus::Processing, None));
    assert!(shown.error.unwrap().contains("being cancelled"));
    assert_eq!(bench.store.status(job).await.unwrap(), Some(JobStatus::Processing));
    let listed = async |status| {
        let filter = JobFilter { status: Some(status), ..JobFilter::default() };
        bench.store.jobs(&filter).await.unwrap().len()
    };
    assert_eq!(listed(JobStatus::Processing).await, 1);
    assert_eq!(listed(JobStatus::Cancelled).await, 1, "the other one");
    assert_eq!(bench.store.put_merged(segment.lease, &part(1)).await.unwrap(), Kept::Lost);
    assert_eq!(bench.finish_merge(&segment).await, Kept::Lost);
    assert!(bench.store.claim_segments(&by(), 10).await.unwrap().is_empty());
    let child = NewJob {
        request: Request {
            after: Some(vec![job]),
            on_failed: Some(OnFailed::Run),
            ..new_job().request
        },
        ..new_job()
    };
    let child = bench.store.submit(child).await.unwrap().id();
    assert!(bench.job(child).await.error.unwrap().contains("waits for 1 job"));

    // Its database is unavailable at first, which the job says.
    let ending = bench.store.claim_cancelled_merges(&by(), 10).await.unwrap();
    assert_eq!(ending.len(), 1);
    assert!(ending[0].epoch > segment.lease.epoch);
    assert!(bench.store.claim_cancelled_merges(&by(), 10).await.unwrap().is_empty());
    let (away, wait) = (Some("the warehouse is down"), std::time::Duration::ZERO);
    let kept = bench.store.release_segment(ending[0], away, false, wait).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    assert!(bench.job(job).await.error.unwrap().ends_with("the warehouse is down"));
    bench.check(job).await;
    // Asked again, it is tried again.
    assert_eq!(bench.store.cancel(job).await.unwrap(), JobStatus::Processing);
    let again = bench.store.claim_cancelled_merges(&by(), 10).await.unwrap().remove(0);
    let late = bench.store.end_cancelled_merge(ending[0], None).await.unwrap();
    assert_eq!((late, bench.status(job).await), (Kept::Lost, JobStatus::Processing));
    for _ in 0..2 {
        let ended = bench.store.end_cancelled_merge(again, Some("it had loaded")).await.unwrap();
        assert_eq!(ended, Kept::Yes);
    }
    let shown = bench.job(job).await;
    assert_eq!(
        (shown.status, shown.error.as_deref()),
        (JobStatus::Cancelled, Some("it had loaded"))
    );
    assert!(shown.finished_at.is_some());
    assert_eq!(bench.job(child).await.error, None, "its dependents are told now");
    let here = ["app".to_owned()];
    assert_eq!(bench.store.discardable(&here, 10).await.unwrap(), [(job, "app".to_owned())]);
    bench.check(job).await;
}

async fn parts_go_with_their_job(bench: Bench) {
    let job = bench.mapped().await;
    bench.store.cancel(job).await.unwrap();
    bench.store.remove_parts(job).await.unwrap();
    assert!(bench.store.parts(job, MERGED - 1, 10).await.unwrap().is_empty());
    let job = bench.mapped().await;
    bench.store.cancel(job).await.unwrap();
    assert!(bench.store.close(job, std::time::Duration::ZERO).await.unwrap());
    bench.store.remove(job).await.unwrap();
    assert_eq!(bench.number("SELECT count(*) FROM windlass_parts").await, 0);
}
