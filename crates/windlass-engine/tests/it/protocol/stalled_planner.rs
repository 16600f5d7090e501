//! A planner that stalls and continues after another has planned the segment. Its page is refused, so that no chunk is
//! duplicated.

use crate::protocol::common::*;
use windlass_core::pagination::name_key;
use windlass_core::{JobId, Key, KeyRange, PaginationState};
use windlass_engine::Engine;
use windlass_store::{LeasedSegment, NewChunk, NewSegment, Page, StoreError};

const ROWS: i64 = 500;
/// Small chunks, and pages of the size that the planner of this test uses.
const SMALL: &str = "chunk.items = 10";
const CHUNKS_PER_PAGE: u32 = 3;

pub(crate) async fn a_late_plan_is_refused(fixture: EngineFixture) {
    let (engine, job) = submitted(&fixture).await;
    let stalled = plan(&engine, lease(&engine, job).await).await;
    is_refused_after_another(&fixture, &engine, job, stalled).await;
}

pub(crate) async fn a_late_first_page_is_refused(fixture: EngineFixture) {
    let (engine, job, segment) = planned(&fixture).await;
    let stalled = page(&engine, &segment, segment.state.clone()).await;
    is_refused_after_another(&fixture, &engine, job, stalled).await;
}

/// The next planner continues after the page that the stalled one has committed.
pub(crate) async fn a_late_page_in_the_middle_is_refused(fixture: EngineFixture) {
    let (engine, job, segment) = planned(&fixture).await;
    let first = page(&engine, &segment, segment.state.clone()).await;
    engine.store().commit_page(first.clone()).await.unwrap();
    let stalled = page(&engine, &segment, first.to.clone()).await;
    is_refused_after_another(&fixture, &engine, job, stalled).await;
}

/// The lease is taken over, but nothing is planned yet, so only the epoch differs.
pub(crate) async fn a_page_is_refused_as_soon_as_another_has_leased_the_segment(
    fixture: EngineFixture,
) {
    let (engine, job, segment) = planned(&fixture).await;
    let stalled = page(&engine, &segment, segment.state.clone()).await;

    fixture.expire("windlass_segments").await;
    engine.store().rescue().await.unwrap();
    let second = lease(&engine, job).await;
    assert_eq!((segment.lease.epoch, second.lease.epoch), (1, 2));
    assert!(matches!(engine.store().commit_page(stalled).await, Err(StoreError::LeaseLost)));

    let first = page(&engine, &second, second.state.clone()).await;
    engine.store().commit_page(first).await.unwrap();
    is_planned_by_another(&fixture, &engine, job).await;
}

/// A page whose answer was lost is sent again. It is accepted, and its chunks exist once.
pub(crate) async fn a_page_sent_twice_is_planned_once(fixture: EngineFixture) {
    let (engine, job) = submitted(&fixture).await;
    let planned = plan(&engine, lease(&engine, job).await).await;
    for _ in 0..2 {
        engine.store().commit_page(planned.clone()).await.unwrap();
    }
    let segment = lease(&engine, job).await;
    let first = page(&engine, &segment, segment.state.clone()).await;
    for _ in 0..2 {
        engine.store().commit_page(first.clone()).await.unwrap();
    }
    assert_eq!(chunks(&engine, job).await.len(), CHUNKS_PER_PAGE as usize);
    is_planned_by_another(&fixture, &engine, job).await;
}

on_each!(
    a_late_plan_is_refused,
    a_late_first_page_is_refused,
    a_late_page_in_the_middle_is_refused,
    a_page_is_refused_as_soon_as_another_has_leased_the_segment,
    a_page_sent_twice_is_planned_once,
);

/// A submitted job, of which nothing is planned.
async fn submitted(fixture: &EngineFixture) -> (Engine, JobId) {
    fixture.visits(ROWS).await;
    let engine = fixture.engine(&job(ADD, SMALL)).await;
    let job = submit(&engine).await;
    (engine, job)
}

/// A job with one planned segment, which is leased.
async fn planned(fixture: &EngineFixture) -> (Engine, JobId, LeasedSegment) {
    let (engine, job) = submitted(fixture).await;
    let planned = plan(&engine, lease(&engine, job).await).await;
    engine.store().commit_page(planned).await.unwrap();
    let segment = lease(&engine, job).await;
    (engine, job, segment)
}

/// Asserts that another worker completes the job after the lease has expired, and that the late page is refused.
async fn is_refused_after_another(
    fixture: &EngineFixture,
    engine: &Engine,
    job: JobId,
    late: Page,
) {
    fixture.expire("windlass_segments").await;
    let done = work(engine, job).await;
    assert!(matches!(engine.store().commit_page(late).await, Err(StoreError::LeaseLost)));
    whole(fixture, engine, done.id).await;
}

/// Asserts that another worker completes the job after the lease has expired.
async fn is_planned_by_another(fixture: &EngineFixture, engine: &Engine, job: JobId) {
    fixture.expire("windlass_segments").await;
    let done = work(engine, job).await;
    whole(fixture, engine, done.id).await;
}

async fn lease(engine: &Engine, job: JobId) -> LeasedSegment {
    let leased = engine.store().lease_segments(&by_hand(job), 1).await.unwrap();
    leased.into_iter().next().expect("there is a segment to lease")
}

/// The plan of one segment over the whole table.
async fn plan(engine: &Engine, leased: LeasedSegment) -> Page {
    let state = |items_enqueued| PaginationState::TableScan {
        segment: 0,
        total_segments: 1,
        last_evaluated_key: None,
        items_enqueued,
    };
    let scope = scope(engine, leased.lease.job).await;
    let ranges = engine.connection("app").unwrap().split(&scope, 1).await.unwrap();
    let range = ranges.into_iter().next().unwrap();
    Page {
        lease: leased.lease,
        from: leased.state,
        to: state(0),
        last: true,
        segments: vec![NewSegment { state: state(0), range }],
        chunks: Vec::new(),
        planned: false,
        read_snapshot: None,
    }
}

/// The page of a scan after the given state, as the planner makes it.
async fn page(engine: &Engine, segment: &LeasedSegment, from: PaginationState) -> Page {
    let PaginationState::TableScan { last_evaluated_key, items_enqueued, .. } = &from else {
        panic!("not a scan: {from:?}");
    };
    let scope = scope(engine, segment.lease.job).await;
    let after = last_evaluated_key.as_ref().map(|last| Key::from_id(last["id"].clone()));
    let range = KeyRange { after, upto: segment.range.upto.clone() };
    let connection = engine.connection("app").unwrap();
    let cuts = connection
        .cut(
            &scope,
            windlass_connectors::CutRange::new(None, &range),
            windlass_connectors::CutLimits::new(10, CHUNKS_PER_PAGE, None),
        )
        .await
        .unwrap();
    let cut: i64 = cuts.chunks.iter().map(|(_, items)| items).sum();
    let to = PaginationState::TableScan {
        segment: 0,
        total_segments: 1,
        last_evaluated_key: cuts.last.map(|last| name_key(&["id".to_owned()], &last)),
        items_enqueued: items_enqueued + cut as u64,
    };
    let chunks =
        cuts.chunks.into_iter().map(|(key_set, items)| NewChunk { key_set, items }).collect();
    Page {
        lease: segment.lease,
        from,
        to,
        last: cuts.done,
        segments: Vec::new(),
        chunks,
        planned: false,
        read_snapshot: None,
    }
}

/// No chunk is missing or duplicated.
async fn whole(fixture: &EngineFixture, engine: &Engine, job: JobId) {
    let done = engine.job(job).await.unwrap();
    proven(engine, &done).await;
    assert_eq!((done.items.total, done.chunks.total), (ROWS, ROWS / 10));
    let mut covered = 0;
    for chunk in chunks(engine, job).await {
        covered += count(engine, job, &chunk.key_set).await;
    }
    assert_eq!(covered, ROWS);
    fixture.each_once(ROWS).await;
}
