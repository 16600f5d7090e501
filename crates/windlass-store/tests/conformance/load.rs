//! A job is cut into chunks, page by page.

use std::time::Duration;

use windlass_core::{ChunkStatus, JobStatus, PaginationState, Phase};
use windlass_store::{Kept, Page, SegmentLease};

use crate::bench::{Bench, LIMIT, by, cut, last_page, new_segments, page, scan};

both!(
    a_plan_makes_segments_and_segments_make_chunks,
    a_page_commits_all_or_nothing,
    a_repeated_page_is_kept_once,
    a_stalled_loader_is_refused,
    a_page_from_another_state_is_refused,
    an_empty_job_completes_with_its_last_page,
    a_segment_is_handed_back,
    a_failed_segment_fails_the_job,
    extents_come_back_byte_for_byte,
    a_large_page_is_numbered_in_order,
);

async fn a_plan_makes_segments_and_segments_make_chunks(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    assert_eq!(plan.state, PaginationState::Plan);
    assert_eq!(bench.job(job).await.phase, Some(Phase::Planning));
    assert!(bench.job(job).await.started_at.is_some());

    let split = last_page(plan.lease, PaginationState::Plan, scan(0), vec![]);
    let split = Page { segments: new_segments(2), ..split };
    assert_eq!(bench.store.load(split).await.unwrap(), Kept::Yes);
    let segments = bench.store.claim_segments(&by(), 10).await.unwrap();
    assert_eq!(segments.iter().map(|s| s.lease.segment).collect::<Vec<_>>(), [1, 2]);

    for (place, segment) in segments.into_iter().enumerate() {
        let next = scan(100 + place as u64);
        let first = page(segment.lease, segment.state.clone(), next.clone(), cut(3));
        assert_eq!(bench.store.load(first).await.unwrap(), Kept::Yes);
        bench.check(job).await;
        let last = last_page(segment.lease, next, scan(200), cut(1));
        assert_eq!(bench.store.load(last).await.unwrap(), Kept::Yes);
    }
    let chunks = bench.chunks(job).await;
    assert_eq!(chunks.iter().map(|c| c.segment).collect::<Vec<_>>(), [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(bench.job(job).await.phase, Some(Phase::Working));
    assert_eq!(bench.job(job).await.items.total, 80);
    bench.check(job).await;
}

async fn a_page_commits_all_or_nothing(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    // Dropped half way, at many moments: what is there afterwards is a whole page or none.
    for micros in [0, 200, 500, 1_000, 2_000, 5_000] {
        let whole = last_page(plan.lease, PaginationState::Plan, scan(10), cut(50));
        let whole = Page { segments: new_segments(5), ..whole };
        let load = bench.store.load(whole);
        let _ = tokio::time::timeout(Duration::from_micros(micros), load).await;
        // Behind whatever is still going on in the store.
        bench.store.rescue().await.unwrap();
        let loaded = bench.job(job).await.chunks.total == 50;
        let (chunks, segments) = if loaded { (50, 6) } else { (0, 1) };
        assert_eq!(bench.chunks(job).await.len(), chunks);
        assert_eq!(bench.store.segments(job).await.unwrap().len(), segments);
        bench.check(job).await;
    }
    let whole = last_page(plan.lease, PaginationState::Plan, scan(10), cut(50));
    let whole = Page { segments: new_segments(5), ..whole };
    assert_eq!(bench.store.load(whole).await.unwrap(), Kept::Yes);
    assert_eq!(bench.chunks(job).await.len(), 50);
}

async fn a_repeated_page_is_kept_once(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    let first = page(plan.lease, PaginationState::Plan, scan(30), cut(3));
    let last = last_page(plan.lease, scan(30), scan(60), cut(3));
    for (page, chunks) in [(first, 3), (last, 6)] {
        for _ in 0..3 {
            assert_eq!(bench.store.load(page.clone()).await.unwrap(), Kept::Yes);
            assert_eq!(bench.chunks(job).await.len(), chunks);
        }
    }
    bench.check(job).await;
}

async fn a_stalled_loader_is_refused(bench: Bench) {
    let job = bench.submit().await;
    let stalled = bench.segment_of(job).await;
    let handed_back = bench.store.release_segment(stalled.lease, None, false, Duration::ZERO).await;
    assert_eq!(handed_back.unwrap(), Kept::Yes);
    let next = bench.segment_of(job).await;
    assert!(next.lease.epoch > stalled.lease.epoch);

    let late = last_page(stalled.lease, PaginationState::Plan, scan(10), cut(3));
    assert_eq!(bench.store.load(late.clone()).await.unwrap(), Kept::Lost);
    assert_eq!(bench.chunks(job).await.len(), 0);
    let failed = bench.store.fail_segment(stalled.lease, "late").await.unwrap();
    assert_eq!(failed, Kept::Lost);
    let released = bench.store.release_segment(stalled.lease, None, false, Duration::ZERO).await;
    assert_eq!(released.unwrap(), Kept::Lost);

    let page = last_page(next.lease, PaginationState::Plan, scan(10), cut(3));
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Yes);
    assert_eq!(bench.store.load(late).await.unwrap(), Kept::Lost);
    assert_eq!(bench.chunks(job).await.len(), 3);
    bench.check(job).await;
}

async fn a_page_from_another_state_is_refused(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    let skipping = page(plan.lease, scan(10), scan(20), cut(1));
    assert_eq!(bench.store.load(skipping).await.unwrap(), Kept::Lost);
    let nowhere = SegmentLease { segment: 7, ..plan.lease };
    let page = page(nowhere, PaginationState::Plan, scan(20), cut(1));
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Lost);
    assert_eq!(bench.chunks(job).await.len(), 0);
}

async fn an_empty_job_completes_with_its_last_page(bench: Bench) {
    let job = bench.loaded(0).await;
    let job_now = bench.job(job).await;
    assert_eq!((job_now.status, job_now.phase), (JobStatus::Completed, None));
    assert!(job_now.finished_at.is_some());
    bench.check(job).await;
}

async fn a_segment_is_handed_back(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    let long = Duration::from_secs(3600);
    let kept =
        bench.store.release_segment(plan.lease, Some("no\0 route"), true, long).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    assert!(bench.store.claim_segments(&by(), 1).await.unwrap().is_empty(), "it waits");
    let segment = bench.store.segments(job).await.unwrap().remove(0);
    assert_eq!(segment.error.as_deref(), Some("no\u{fffd} route"));
    let waiting = bench.job(job).await;
    assert_eq!(waiting.error, segment.error, "the job says why it waits");

    let other = bench.submit().await;
    let plan = bench.segment_of(other).await;
    let soon = Duration::from_millis(100);
    assert_eq!(
        bench.store.release_segment(plan.lease, Some("x"), true, soon).await.unwrap(),
        Kept::Yes
    );
    let mut again = Vec::new();
    windlass_testkit::eventually("it is claimed again", LIMIT, async || {
        again = bench.store.claim_segments(&by(), 1).await.unwrap();
        !again.is_empty()
    })
    .await;
    assert_eq!((again[0].lease.job, again[0].attempts), (other, 1));
    // To ask whether it is still ours is no progress.
    let nothing = page(again[0].lease, PaginationState::Plan, PaginationState::Plan, vec![]);
    assert_eq!(bench.store.load(nothing).await.unwrap(), Kept::Yes);
    let back = bench.store.release_segment(again[0].lease, None, false, Duration::ZERO).await;
    assert_eq!(back.unwrap(), Kept::Yes);
    let again = bench.store.claim_segments(&by(), 1).await.unwrap();
    assert_eq!(again[0].attempts, 1);
    let away = bench.store.release_segment(again[0].lease, Some("away"), false, long).await;
    assert_eq!(away.unwrap(), Kept::Yes);
    assert_eq!(bench.job(other).await.error.as_deref(), Some("away"));
}

async fn a_failed_segment_fails_the_job(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    for _ in 0..2 {
        let kept = bench.store.fail_segment(plan.lease, "no such table").await.unwrap();
        assert_eq!(kept, Kept::Yes);
    }
    let failed = bench.job(job).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!(failed.error.as_deref(), Some("loading failed: no such table"));
    bench.check(job).await;

    assert_eq!(bench.store.retry(job).await.unwrap(), JobStatus::Queued);
    bench.check(job).await;
    let again = bench.segment_of(job).await;
    assert!(again.lease.epoch > plan.lease.epoch);
    assert_eq!(again.attempts, 0);
    assert_eq!(bench.store.segments(job).await.unwrap()[0].status, ChunkStatus::Processing);
}

async fn extents_come_back_byte_for_byte(bench: Bench) {
    use windlass_core::{FilterValue, Key, KeySet, Value};
    use windlass_store::NewChunk;
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    let odd = Key(vec![Value::Text("a\0\"'\\ü%".into()), Value::Int(i64::MIN), Value::Float(0.1)]);
    let within = Some(FilterValue { filter: "f".into(), value: Value::Bytes(vec![0, 255]) });
    let key_sets = [
        KeySet { within, ..KeySet::range(Some(odd.clone()), None) },
        KeySet::keys(vec![odd.clone(), Key(vec![Value::Null])]),
    ];
    let chunks = key_sets.iter().map(|e| NewChunk { key_set: e.clone(), items: 1 }).collect();
    let page = last_page(plan.lease, PaginationState::Plan, scan(2), chunks);
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Yes);
    let claimed = bench.claim(job, 2).await;
    assert_eq!(claimed.iter().map(|c| c.key_set.clone()).collect::<Vec<_>>(), key_sets);
}

async fn a_large_page_is_numbered_in_order(bench: Bench) {
    let job = bench.loaded(1000).await;
    let chunks = bench.chunks(job).await;
    let expected: Vec<_> = cut(1000).into_iter().map(|chunk| chunk.key_set).collect();
    assert_eq!(chunks.into_iter().map(|chunk| chunk.key_set).collect::<Vec<_>>(), expected);
    let after = bench.store.chunks(job, Some(ChunkStatus::Pending), Some(989), 5).await.unwrap();
    assert_eq!(after.iter().map(|c| c.chunk).collect::<Vec<_>>(), [990, 991, 992, 993, 994]);
    bench.check(job).await;
}
