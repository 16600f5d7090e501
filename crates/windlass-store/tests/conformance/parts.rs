//! Parts are stored when their chunk completes, and merged when all chunks are completed.

use serde_json::json;
use windlass_core::{JobId, JobStatus, OnFailed, PaginationState, Phase, Request};
use windlass_store::{HandBack, JobFilter, LeasedSegment, MERGED, NewJob, NewPart, REPORT, Result};

use crate::fixture::{StoreFixture, assert_lost, by, done, job_with, last_page, new_job};

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

impl StoreFixture {
    /// A job with two chunks, both completed with a part.
    async fn mapped(&self) -> JobId {
        let job = self.planned_as(mapping(), 2).await;
        for chunk in self.lease(job, 2).await {
            let rows = chunk.lease.chunk.number;
            self.store.complete_part(chunk.lease, &done(10), &part(rows)).await.unwrap();
        }
        job
    }

    async fn finish_merge(&self, segment: &LeasedSegment) -> Result<()> {
        let (from, to) = (PaginationState::Merge, PaginationState::Merge);
        self.store.commit_page(last_page(segment.lease, from, to, Vec::new())).await
    }
}

async fn a_part_is_stored_when_its_chunk_completes(fixture: StoreFixture) {
    let job = fixture.planned_as(mapping(), 2).await;
    let chunks = fixture.lease(job, 2).await;
    for _ in 0..2 {
        fixture.store.complete_part(chunks[1].lease, &done(10), &part(7)).await.unwrap();
    }
    let mut lost = chunks[0].lease;
    lost.epoch += 1;
    assert_lost(fixture.store.complete_part(lost, &done(10), &part(8)).await);
    let parts = fixture.store.parts(job, MERGED, 10).await.unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!((parts[0].chunk, parts[0].epoch, &parts[0].part), (1, 1, &part(7)));
    assert!(fixture.store.parts(job, 1, 10).await.unwrap().is_empty());
    fixture.check(job).await;
}

async fn the_merge_is_the_last_segment(fixture: StoreFixture) {
    let job = fixture.mapped().await;
    let shown = fixture.job(job).await;
    assert_eq!((shown.status, shown.phase), (JobStatus::Processing, Some(Phase::Merging)));
    fixture.check(job).await;
    let segment = fixture.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
    fixture.store.put_merged(segment.lease, &part(9)).await.unwrap();
    fixture.finish_merge(&segment).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    let parts = fixture.store.parts(job, MERGED - 1, 10).await.unwrap();
    assert_eq!(parts.iter().map(|part| part.chunk).collect::<Vec<_>>(), [MERGED, 0, 1]);
    fixture.check(job).await;
}

async fn a_job_with_a_failed_chunk_is_not_merged(fixture: StoreFixture) {
    let job = fixture.planned_as(mapping(), 1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "broken", false, &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
    fixture.store.retry(job).await.unwrap();
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.complete_part(chunk.lease, &done(10), &part(1)).await.unwrap();
    let segment = fixture.segment_of(job).await;
    fixture.finish_merge(&segment).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
}

async fn a_failed_merge_is_retried(fixture: StoreFixture) {
    let job = fixture.mapped().await;
    let segment = fixture.segment_of(job).await;
    fixture.store.fail_segment(segment.lease, "no such table").await.unwrap();
    let shown = fixture.job(job).await;
    assert_eq!(shown.status, JobStatus::Failed);
    assert!(shown.error.unwrap().contains("no such table"));
    fixture.store.retry(job).await.unwrap();
    let segment = fixture.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    fixture.finish_merge(&segment).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
    fixture.check(job).await;
}

async fn a_merge_with_a_lost_lease_stores_nothing(fixture: StoreFixture) {
    let job = fixture.mapped().await;
    let old = fixture.segment_of(job).await;
    fixture.shorten_segment_leases().await;
    assert_eq!(fixture.store.rescue().await.unwrap(), 1);
    let new = fixture.segment_of(job).await;
    assert_lost(fixture.store.put_merged(old.lease, &part(1)).await);
    assert_lost(fixture.store.put_report(old.lease, &part(1)).await);
    assert_lost(fixture.finish_merge(&old).await);
    fixture.store.put_merged(new.lease, &part(2)).await.unwrap();
    fixture.store.put_report(new.lease, &part(3)).await.unwrap();
    fixture.finish_merge(&new).await.unwrap();
    let merged = fixture.store.parts(job, MERGED - 1, 1).await.unwrap().remove(0);
    assert_eq!((merged.epoch, merged.part), (new.lease.epoch, part(2)));
    let report = fixture.store.parts(job, REPORT - 1, 1).await.unwrap().remove(0);
    assert_eq!((report.chunk, report.part), (REPORT, part(3)));
}

async fn a_job_without_records_is_merged_too(fixture: StoreFixture) {
    let job = fixture.planned_as(mapping(), 0).await;
    let segment = fixture.segment_of(job).await;
    assert_eq!(segment.state, PaginationState::Merge);
    fixture.finish_merge(&segment).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Completed);
}

async fn a_cancelled_merge_is_fenced_before_the_job_ends(fixture: StoreFixture) {
    let unleased = fixture.mapped().await;
    assert_eq!(fixture.store.cancel(unleased).await.unwrap(), JobStatus::Cancelled);
    fixture.store.mark_discarded(unleased).await.unwrap();
    let job = fixture.mapped().await;
    let segment = fixture.segment_of(job).await;
    // Its load may still commit, so the job is not cancelled before the load is fenced.
    assert_eq!(fixture.store.cancel(job).await.unwrap(), JobStatus::Processing);
    let shown = fixture.job(job).await;
    assert_eq!((shown.status, shown.finished_at), (JobStatus::Processing, None));
    assert!(shown.error.unwrap().contains("being cancelled"));
    assert_eq!(fixture.store.status(job).await.unwrap(), Some(JobStatus::Processing));
    let listed = async |status| {
        let filter = JobFilter { status: Some(status), ..JobFilter::default() };
        fixture.store.jobs(&filter).await.unwrap().len()
    };
    assert_eq!(listed(JobStatus::Processing).await, 1);
    assert_eq!(listed(JobStatus::Cancelled).await, 1, "the other job");
    assert_lost(fixture.store.put_merged(segment.lease, &part(1)).await);
    assert_lost(fixture.finish_merge(&segment).await);
    assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
    let child = NewJob {
        request: Request {
            after: Some(vec![job]),
            on_failed: Some(OnFailed::Run),
            ..new_job().request
        },
        ..new_job()
    };
    let child = fixture.store.submit(child).await.unwrap().id();
    assert!(fixture.job(child).await.error.unwrap().contains("waits for 1 job"));

    // Its database is unavailable at first, and the job shows that.
    let ending = fixture.store.lease_cancelled_merges(&by(), 10).await.unwrap();
    assert_eq!(ending.len(), 1);
    assert!(ending[0].epoch > segment.lease.epoch);
    assert!(fixture.store.lease_cancelled_merges(&by(), 10).await.unwrap().is_empty());
    let (reason, wait) = (Some("the warehouse is down"), std::time::Duration::ZERO);
    fixture.store.release_segment(ending[0], HandBack::new(reason, false, wait)).await.unwrap();
    assert!(fixture.job(job).await.error.unwrap().ends_with("the warehouse is down"));
    fixture.check(job).await;
    // Cancelling again retries the fence at once.
    assert_eq!(fixture.store.cancel(job).await.unwrap(), JobStatus::Processing);
    let again = fixture.store.lease_cancelled_merges(&by(), 10).await.unwrap().remove(0);
    assert_lost(fixture.store.end_cancelled_merge(ending[0], None).await);
    assert_eq!(fixture.status(job).await, JobStatus::Processing);
    for _ in 0..2 {
        fixture.store.end_cancelled_merge(again, Some("it had loaded")).await.unwrap();
    }
    let shown = fixture.job(job).await;
    assert_eq!(
        (shown.status, shown.error.as_deref()),
        (JobStatus::Cancelled, Some("it had loaded"))
    );
    assert!(shown.finished_at.is_some());
    assert_eq!(fixture.job(child).await.error, None, "its followers are released now");
    let here = ["app".to_owned()];
    assert_eq!(fixture.store.discardable(&here, 10).await.unwrap(), [(job, "app".to_owned())]);
    fixture.check(job).await;
}

async fn parts_are_deleted_with_their_job(fixture: StoreFixture) {
    let job = fixture.mapped().await;
    fixture.store.cancel(job).await.unwrap();
    fixture.store.remove_parts(job).await.unwrap();
    assert!(fixture.store.parts(job, MERGED - 1, 10).await.unwrap().is_empty());
    let job = fixture.mapped().await;
    fixture.store.cancel(job).await.unwrap();
    assert!(fixture.store.close_job(job, std::time::Duration::ZERO).await.unwrap());
    fixture.store.remove_job(job).await.unwrap();
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_parts").await, 0);
}

both!(
    a_part_is_stored_when_its_chunk_completes,
    the_merge_is_the_last_segment,
    a_job_with_a_failed_chunk_is_not_merged,
    a_failed_merge_is_retried,
    a_merge_with_a_lost_lease_stores_nothing,
    a_job_without_records_is_merged_too,
    a_cancelled_merge_is_fenced_before_the_job_ends,
    parts_are_deleted_with_their_job,
);
