//! Leases are extended by heartbeats, handed back at an orderly shutdown, and limited by the timeout.

use crate::protocol::common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass_core::ChunkStatus;
use windlass_engine::{ItemContext, WorkerStats};
use windlass_testkit::eventually;

pub(crate) async fn a_shutdown_hands_chunks_back_and_another_worker_finishes_them(
    fixture: EngineFixture,
) {
    const ROWS: i64 = 60;
    fixture.visits(ROWS).await;
    let held = HeldHandler::new();
    let calls = Arc::new(AtomicU32::new(0));
    let handler = {
        let (held, calls) = (held.clone(), calls.clone());
        move |visit: Visit, _| {
            let held = held.clone();
            calls.fetch_add(1, Ordering::SeqCst);
            async move {
                if visit.id == 13 {
                    held.wait().await;
                }
                visit.done()
            }
        }
    };
    // The lease is longer than the test, so the second worker gets the chunk only if it is handed back.
    let jobs = job(HANDLER, "chunk.items = 20\nchunk.commit = 2\nchunk.lease = \"5m\"");
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let job = submit(&engine).await;
    let first = Working::start(&engine, "first", 1);
    held.begun.notified().await;
    first.handle.shutdown();
    held.answer.add_permits(1);
    let stats = first.stop().await;
    let mut expected = WorkerStats::default();
    expected.handed_back = 1;
    assert_eq!(stats, expected);

    let left = chunks(&engine, job).await;
    assert!(left.iter().all(|chunk| chunk.status != ChunkStatus::Processing));
    assert_eq!(left[0].counts.processed, 14, "the commit it was at is finished and told");
    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(i64::from(calls.load(Ordering::SeqCst)), ROWS, "no item was worked twice");
    let chunks = chunks(&engine, job).await;
    assert!(chunks.iter().all(|chunk| (chunk.attempts, chunk.losses) == (0, 0)));
}

pub(crate) async fn heartbeats_extend_a_lease_that_is_shorter_than_the_work(
    fixture: EngineFixture,
) {
    fixture.visits(1).await;
    let held = HeldHandler::new();
    let jobs = job(HANDLER, "chunk.lease = \"1m\"\nchunk.timeout = \"10m\"");
    let engine = fixture.builder(&jobs).handler("work", held.handler()).connect().await.unwrap();
    let job = submit(&engine).await;
    let workers = [Working::start(&engine, "one", 1), Working::start(&engine, "other", 1)];
    held.begun.notified().await;
    for _ in 0..3 {
        let lease = fixture.latest_lease().await;
        let extended = async || fixture.latest_lease().await > lease;
        eventually("a heartbeat extends the lease", PATIENCE, extended).await;
    }
    assert_eq!(engine.store().rescue().await.unwrap(), 0);
    held.answer.add_permits(10);
    let done = ended(&engine, job).await;
    for worker in workers {
        worker.stop().await;
    }
    proven(&engine, &done).await;
    fixture.each_once(1).await;
    let chunk = &chunks(&engine, job).await[0];
    assert_eq!((chunk.epoch, chunk.losses), (1, 0), "no other worker had the chunk");
}

/// A chunk that hangs fails at `chunk.timeout`, which counts as a failed attempt.
pub(crate) async fn a_chunk_that_hangs_fails_at_its_timeout(fixture: EngineFixture) {
    fixture.visits(3).await;
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let handler = move |visit: Visit, _: ItemContext| {
        let hangs = visit.id == 2 && seen.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            visit.done()
        }
    };
    // Heartbeats extend the lease, which may not be longer than the timeout, until the timeout.
    let jobs = job(HANDLER, "chunk.lease = \"10s\"\nchunk.timeout = \"10s\"");
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let id = submit(&engine).await;
    // Only the worker's own limit ends the chunk, however late it tells the store.
    fixture.store.run("UPDATE windlass_jobs SET lease_ms = 3600000, timeout_ms = 3600000").await;
    let done = work(&engine, id).await;
    proven(&engine, &done).await;
    fixture.each_once(3).await;
    fixture.logged_once(3).await;
    let chunk = &chunks(&engine, done.id).await[0];
    assert_eq!((chunk.attempts, chunk.losses), (1, 0), "{chunk:?}");
}

/// A worker that loses its lease stops, and only the other worker's changes count.
pub(crate) async fn a_worker_whose_lease_was_taken_commits_nothing(fixture: EngineFixture) {
    fixture.visits(10).await;
    let held = HeldHandler::new();
    // The first heartbeat comes after a second, long after the lease is taken.
    let jobs = job(HANDLER, "chunk.lease = \"5m\"");
    let engine = fixture.builder(&jobs).handler("work", held.handler()).connect().await.unwrap();
    let job = submit(&engine).await;
    let stalled = Working::start(&engine, "stalled", 1);
    held.begun.notified().await;
    let taken = async || {
        // A heartbeat may extend the lease in between. Then expire it again.
        fixture.expire("windlass_chunks").await;
        engine.store().rescue().await.unwrap() > 0
    };
    eventually("the lease runs out", PATIENCE, taken).await;
    let quick = async |visit: Visit, _| visit.done();
    let other = fixture.builder(&jobs).handler("work", quick).connect().await.unwrap();
    let second = Working::start(&other, "second", 1);
    // The first worker may lease the chunk again. Then its second call answers.
    held.answer.add_permits(1000);
    let done = ended(&engine, job).await;
    second.stop().await;
    let stats = stalled.stop().await;
    proven(&other, &done).await;
    assert!(stats.lost >= 1, "{stats:?}");
    fixture.each_once(10).await;
    fixture.logged_once(10).await;
}

on_each!(
    a_shutdown_hands_chunks_back_and_another_worker_finishes_them,
    heartbeats_extend_a_lease_that_is_shorter_than_the_work,
    a_chunk_that_hangs_fails_at_its_timeout,
    a_worker_whose_lease_was_taken_commits_nothing,
);
