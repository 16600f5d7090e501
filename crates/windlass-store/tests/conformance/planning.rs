//! Planning cuts a job into chunks, page by page.

use std::time::Duration;

use windlass_core::{ChunkStatus, JobStatus, PaginationState, Phase};
use windlass_store::{CompletePlan, HandBack, NewJob, Page, SegmentLease, Submitted};

use crate::fixture::{
    LIMIT, StoreFixture, assert_lost, by, cut, last_page, new_job, new_segments, page, scan,
};

async fn a_plan_creates_segments_and_segments_create_chunks(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    assert_eq!(plan.state, PaginationState::Plan);
    assert_eq!(fixture.job(job).await.phase, Some(Phase::Planning));
    assert!(fixture.job(job).await.started_at.is_some());

    let split = last_page(plan.lease, PaginationState::Plan, scan(0), vec![]);
    let split = Page { segments: new_segments(2), ..split };
    fixture.store.commit_page(split).await.unwrap();
    let segments = fixture.store.lease_segments(&by(), 10).await.unwrap();
    assert_eq!(segments.iter().map(|s| s.lease.segment).collect::<Vec<_>>(), [1, 2]);

    for (place, segment) in segments.into_iter().enumerate() {
        let next = scan(100 + place as u64);
        let first = page(segment.lease, segment.state.clone(), next.clone(), cut(3));
        fixture.store.commit_page(first).await.unwrap();
        fixture.check(job).await;
        let last = last_page(segment.lease, next, scan(200), cut(1));
        fixture.store.commit_page(last).await.unwrap();
    }
    let chunks = fixture.chunks(job).await;
    assert_eq!(chunks.iter().map(|c| c.segment).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(fixture.job(job).await.phase, Some(Phase::Working));
    assert_eq!(fixture.job(job).await.items.total, 80);
    fixture.check(job).await;
}

async fn a_plan_may_add_its_one_segment_with_all_its_chunks(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let planned = last_page(plan.lease, PaginationState::Plan, scan(0), cut(2));
    let planned = Page { segments: new_segments(1), planned: true, ..planned };
    for _ in 0..2 {
        fixture.store.commit_page(planned.clone()).await.unwrap();
    }
    let segments = fixture.store.segments(job).await.unwrap();
    let statuses: Vec<_> = segments.iter().map(|row| (row.segment, row.status)).collect();
    assert_eq!(statuses, [(0, ChunkStatus::Completed), (1, ChunkStatus::Completed)]);
    assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
    let chunks = fixture.chunks(job).await;
    assert_eq!(chunks.iter().map(|chunk| chunk.segment).collect::<Vec<_>>(), [1, 1]);
    let shown = fixture.job(job).await;
    assert_eq!((shown.phase, shown.chunks.total), (Some(Phase::Working), 2));
    fixture.check(job).await;
}

async fn a_job_may_be_submitted_with_its_plan(fixture: StoreFixture) {
    for segments in [0, 1] {
        let plan =
            CompletePlan { state: scan(0), segments: new_segments(segments), chunks: cut(2) };
        let job = NewJob { plan: Some(plan), ..new_job() };
        for _ in 0..2 {
            assert_eq!(fixture.store.submit(job.clone()).await.unwrap(), Submitted::New(job.id));
        }
        let job = job.id;
        let listed = fixture.store.segments(job).await.unwrap();
        assert_eq!(listed.len() as u64, segments + 1);
        assert!(listed.iter().all(|row| row.status == ChunkStatus::Completed), "{listed:?}");
        let chunks = fixture.chunks(job).await;
        let expected = segments as i32;
        assert!(chunks.iter().all(|chunk| chunk.segment == expected), "{chunks:?}");
        assert_eq!(fixture.status(job).await, JobStatus::Queued);
        assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
        fixture.check(job).await;
        for chunk in fixture.lease(job, 10).await {
            assert_eq!(fixture.status(job).await, JobStatus::Processing);
            fixture.complete(&chunk).await.unwrap();
            fixture.check(job).await;
        }
        let shown = fixture.job(job).await;
        assert_eq!((shown.status, shown.items.total), (JobStatus::Completed, 20));
    }
}

async fn a_page_commits_all_or_nothing(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    // The call is dropped at many different moments. Afterwards there is a whole page or none.
    for micros in [0, 200, 500, 1_000, 2_000, 5_000] {
        let whole = last_page(plan.lease, PaginationState::Plan, scan(10), cut(50));
        let whole = Page { segments: new_segments(5), ..whole };
        let load = fixture.store.commit_page(whole);
        let _ = tokio::time::timeout(Duration::from_micros(micros), load).await;
        // This waits for the transaction of the dropped call.
        match fixture.is_sqlite() {
            true => drop(fixture.store.rescue().await.unwrap()),
            false => fixture.run("SELECT FROM windlass_jobs FOR UPDATE").await,
        }
        let loaded = fixture.job(job).await.chunks.total == 50;
        let (chunks, segments) = if loaded { (50, 6) } else { (0, 1) };
        assert_eq!(fixture.chunks(job).await.len(), chunks);
        assert_eq!(fixture.store.segments(job).await.unwrap().len(), segments);
        fixture.check(job).await;
    }
    let whole = last_page(plan.lease, PaginationState::Plan, scan(10), cut(50));
    let whole = Page { segments: new_segments(5), ..whole };
    fixture.store.commit_page(whole).await.unwrap();
    assert_eq!(fixture.chunks(job).await.len(), 50);
}

async fn a_repeated_page_is_committed_once(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let first = page(plan.lease, PaginationState::Plan, scan(30), cut(3));
    let last = last_page(plan.lease, scan(30), scan(60), cut(3));
    for (page, chunks) in [(first, 3), (last, 6)] {
        for _ in 0..3 {
            fixture.store.commit_page(page.clone()).await.unwrap();
            assert_eq!(fixture.chunks(job).await.len(), chunks);
        }
    }
    fixture.check(job).await;
}

async fn a_stalled_planner_is_refused(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let stalled = fixture.segment_of(job).await;
    let handed_back = fixture.store.release_segment(stalled.lease, HandBack::default()).await;
    handed_back.unwrap();
    let next = fixture.segment_of(job).await;
    assert!(next.lease.epoch > stalled.lease.epoch);

    let late = last_page(stalled.lease, PaginationState::Plan, scan(10), cut(3));
    assert_lost(fixture.store.commit_page(late.clone()).await);
    assert_eq!(fixture.chunks(job).await.len(), 0);
    assert_lost(fixture.store.fail_segment(stalled.lease, "late").await);
    let released = fixture.store.release_segment(stalled.lease, HandBack::default()).await;
    assert_lost(released);

    let page = last_page(next.lease, PaginationState::Plan, scan(10), cut(3));
    fixture.store.commit_page(page).await.unwrap();
    assert_lost(fixture.store.commit_page(late).await);
    assert_eq!(fixture.chunks(job).await.len(), 3);
    fixture.check(job).await;
}

async fn a_page_from_another_state_is_refused(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let skipping = page(plan.lease, scan(10), scan(20), cut(1));
    assert_lost(fixture.store.commit_page(skipping).await);
    let nowhere = SegmentLease { segment: 7, ..plan.lease };
    let page = page(nowhere, PaginationState::Plan, scan(20), cut(1));
    assert_lost(fixture.store.commit_page(page).await);
    assert_eq!(fixture.chunks(job).await.len(), 0);
}

async fn an_empty_job_completes_with_its_last_page(fixture: StoreFixture) {
    let job = fixture.planned(0).await;
    let job_now = fixture.job(job).await;
    assert_eq!((job_now.status, job_now.phase), (JobStatus::Completed, None));
    assert!(job_now.finished_at.is_some());
    fixture.check(job).await;
}

async fn a_segment_is_handed_back(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let long = Duration::from_secs(3600);
    fixture
        .store
        .release_segment(plan.lease, HandBack::new(Some("no\0 route"), true, long))
        .await
        .unwrap();
    assert!(fixture.store.lease_segments(&by(), 1).await.unwrap().is_empty(), "it waits");
    let segment = fixture.store.segments(job).await.unwrap().remove(0);
    assert_eq!(segment.error.as_deref(), Some("no\u{fffd} route"));
    let waiting = fixture.job(job).await;
    assert_eq!(waiting.error, segment.error, "the job shows why it waits");

    let other = fixture.submit().await;
    let plan = fixture.segment_of(other).await;
    let soon = Duration::from_millis(100);
    fixture.store.release_segment(plan.lease, HandBack::new(Some("x"), true, soon)).await.unwrap();
    let mut again = Vec::new();
    windlass_testkit::eventually("it is leased again", LIMIT, async || {
        again = fixture.store.lease_segments(&by(), 1).await.unwrap();
        !again.is_empty()
    })
    .await;
    assert_eq!((again[0].lease.job, again[0].attempts), (other, 1));
    // A page that only checks the lease does not reset the attempts.
    let nothing = page(again[0].lease, PaginationState::Plan, PaginationState::Plan, vec![]);
    fixture.store.commit_page(nothing).await.unwrap();
    fixture.store.release_segment(again[0].lease, HandBack::default()).await.unwrap();
    let again = fixture.store.lease_segments(&by(), 1).await.unwrap();
    assert_eq!(again[0].attempts, 1);
    fixture
        .store
        .release_segment(again[0].lease, HandBack::new(Some("unavailable"), false, long))
        .await
        .unwrap();
    assert_eq!(fixture.job(other).await.error.as_deref(), Some("unavailable"));
}

async fn a_failed_segment_fails_the_job(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    for _ in 0..2 {
        fixture.store.fail_segment(plan.lease, "no such table").await.unwrap();
    }
    let failed = fixture.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!(failed.error.as_deref(), Some("planning failed: no such table"));
    fixture.check(job).await;

    assert_eq!(fixture.store.retry(job).await.unwrap(), JobStatus::Queued);
    fixture.check(job).await;
    let again = fixture.segment_of(job).await;
    assert!(again.lease.epoch > plan.lease.epoch);
    assert_eq!(again.attempts, 0);
    assert_eq!(fixture.store.segments(job).await.unwrap()[0].status, ChunkStatus::Processing);
}

async fn key_sets_are_read_back_unchanged(fixture: StoreFixture) {
    use windlass_core::{FilterValue, Key, KeySet, Value};
    use windlass_store::NewChunk;
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let odd = Key(vec![Value::Text("a\0\"'\\ü%".into()), Value::Int(i64::MIN), Value::Float(0.1)]);
    let within = Some(FilterValue { filter: "f".into(), value: Value::Bytes(vec![0, 255]) });
    let key_sets = [
        KeySet { within, ..KeySet::range(Some(odd.clone()), None) },
        KeySet::keys(vec![odd.clone(), Key(vec![Value::Null])]),
    ];
    let chunks = key_sets.iter().map(|e| NewChunk { key_set: e.clone(), items: 1 }).collect();
    let page = last_page(plan.lease, PaginationState::Plan, scan(2), chunks);
    fixture.store.commit_page(page).await.unwrap();
    let leased = fixture.lease(job, 2).await;
    assert_eq!(leased.iter().map(|c| c.key_set.clone()).collect::<Vec<_>>(), key_sets);
}

async fn a_large_page_is_numbered_in_order(fixture: StoreFixture) {
    let job = fixture.planned(1000).await;
    let chunks = fixture.chunks(job).await;
    let expected: Vec<_> = cut(1000).into_iter().map(|chunk| chunk.key_set).collect();
    assert_eq!(chunks.into_iter().map(|chunk| chunk.key_set).collect::<Vec<_>>(), expected);
    let after = fixture.store.chunks(job, Some(ChunkStatus::Pending), Some(989), 5).await.unwrap();
    assert_eq!(after.iter().map(|c| c.chunk).collect::<Vec<_>>(), [990, 991, 992, 993, 994]);
    fixture.check(job).await;
}

both!(
    a_plan_may_add_its_one_segment_with_all_its_chunks,
    a_job_may_be_submitted_with_its_plan,
    a_plan_creates_segments_and_segments_create_chunks,
    a_page_commits_all_or_nothing,
    a_repeated_page_is_committed_once,
    a_stalled_planner_is_refused,
    a_page_from_another_state_is_refused,
    an_empty_job_completes_with_its_last_page,
    a_segment_is_handed_back,
    a_failed_segment_fails_the_job,
    key_sets_are_read_back_unchanged,
    a_large_page_is_numbered_in_order,
);
