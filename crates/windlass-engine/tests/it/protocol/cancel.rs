//! After a cancellation, a worker that still has a chunk of the job can no longer change anything.

use crate::protocol::common::*;
use windlass_connectors::ConnectorError;
use windlass_core::{Change, ChunkStatus, JobStatus, Outcome};
use windlass_testkit::eventually;

pub(crate) async fn a_stalled_worker_commits_nothing_after_a_cancellation(fixture: EngineFixture) {
    let marked = job(&format!("{ADD}\nstep.mark = \"busy\""), "chunk.items = 10");
    let (engine, job, stalled) = ByHand::new(&fixture, 30, &marked).await;
    let ledger = stalled.fence().await.unwrap();
    let key_set = &stalled.leased.key_set;
    stalled.connection().mark(&stalled.scope, &ledger, key_set).await.unwrap();
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE busy").await, 10);

    assert_eq!(engine.cancel(job).await.unwrap(), JobStatus::Cancelled);

    let committed = stalled.commit(&ledger).await;
    assert!(matches!(committed, Err(ConnectorError::LeaseLost)), "{committed:?}");
    let marked = stalled.connection().mark(&stalled.scope, &ledger, key_set).await;
    assert!(matches!(marked, Err(ConnectorError::LeaseLost)), "{marked:?}");
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE busy").await, 0);
    let cancelled = engine.job(job).await.unwrap();
    assert_eq!(cancelled.status, JobStatus::Cancelled);
    assert!(cancelled.finished_at.is_some());
    assert_eq!((cancelled.chunks.total, cancelled.chunks.cancelled), (3, 3));
    let chunks = chunks(&engine, job).await;
    assert!(chunks.iter().all(|chunk| chunk.status == ChunkStatus::Cancelled));
}

/// Without a mark to clear, only the fence of the cancellation moves the ledger.
pub(crate) async fn a_cancellation_fences_the_chunks_it_ends(fixture: EngineFixture) {
    let (engine, job, stalled) = ByHand::new(&fixture, 10, &job(ADD, "")).await;
    let ledger = stalled.fence().await.unwrap();
    engine.cancel(job).await.unwrap();
    let committed = stalled.commit(&ledger).await;
    assert!(matches!(committed, Err(ConnectorError::LeaseLost)), "{committed:?}");
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
}

/// The same with a real worker whose handler has not answered yet.
pub(crate) async fn a_worker_in_a_handler_commits_nothing_after_a_cancellation(
    fixture: EngineFixture,
) {
    fixture.visits(10).await;
    let held = HeldHandler::new();
    let jobs = job(HANDLER, "");
    let engine = fixture.builder(&jobs).handler("work", held.handler()).connect().await.unwrap();
    let job = submit(&engine).await;
    let worker = Working::start(&engine, "worker", 1);
    held.begun.notified().await;

    // Another process cancels, which does not have the handler.
    let canceller = fixture.engine(&jobs).await;
    canceller.cancel(job).await.unwrap();
    assert!(canceller.job(job).await.unwrap().finished_at.is_some());
    held.answer.add_permits(100);
    let stats = worker.stop().await;

    assert_eq!((stats.completed, stats.lost), (0, 1));
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 0);
    fixture.logged_once(0).await;
}

/// Committed changes stay, and the counts show them.
pub(crate) async fn a_cancellation_keeps_committed_changes(fixture: EngineFixture) {
    fixture.visits(10).await;
    let held = HeldHandler::new();
    let handler = {
        let held = held.clone();
        move |visit: Visit, _| {
            let held = held.clone();
            async move {
                if visit.id == 4 {
                    held.wait().await;
                }
                if visit.id == 2 {
                    Err(windlass_core::ItemError::permanent("no"))
                } else {
                    visit.done()
                }
            }
        }
    };
    let engine = fixture.builder(&job(HANDLER, "chunk.commit = 1")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let job = submit(&engine).await;
    let worker = Working::start(&engine, "worker", 1);
    held.begun.notified().await;
    engine.cancel(job).await.unwrap();
    held.answer.add_permits(1);
    let closed = async || engine.job(job).await.unwrap().finished_at.is_some();
    eventually("the cancelled job is closed", PATIENCE, closed).await;
    worker.stop().await;

    let cancelled = engine.job(job).await.unwrap();
    assert_eq!((cancelled.items.processed, cancelled.items.dead), (2, 1));
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 2);
    assert_eq!(keys(&letters(&engine, job).await), [2]);
}

/// A job whose table does not exist can be cancelled.
pub(crate) async fn a_job_whose_table_was_dropped_can_be_cancelled(fixture: EngineFixture) {
    let (engine, job, _) = ByHand::new(&fixture, 10, &job(ADD, "")).await;
    fixture.app.run("DROP TABLE visits").await;
    assert_eq!(engine.cancel(job).await.unwrap(), JobStatus::Cancelled);
    assert!(engine.job(job).await.unwrap().finished_at.is_some());
}

pub(crate) async fn emitted_rows_of_a_cancelled_job_are_removed(fixture: EngineFixture) {
    fixture.visits(20).await;
    // All items but the last are committed with an emitted row.
    let handler = |visit: Visit, _| async move {
        if visit.id == 20 {
            std::future::pending::<()>().await;
        }
        let emit = vec![[("id".to_owned(), visit.id.into())].into()];
        Ok(Outcome::Done(Change { emit, ..Change::default() }))
    };
    let more = "chunk.items = 10\nchunk.commit = 1";
    let engine = fixture.builder(&job(HANDLER, more)).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let job = submit(&engine).await;
    let working = Working::start(&engine, "emits", 2);
    let rows = "SELECT count(*) FROM windlass_emitted";
    eventually("all but one are emitted", PATIENCE, async || fixture.int(rows).await == 19).await;
    assert_eq!(
        engine
            .output(job, &windlass_connectors::EmittedCursor::default(), 100)
            .await
            .unwrap()
            .len(),
        19
    );
    engine.cancel(job).await.unwrap();
    assert_eq!(fixture.int(rows).await, 0);
    assert!(
        engine
            .output(job, &windlass_connectors::EmittedCursor::default(), 100)
            .await
            .unwrap()
            .is_empty()
    );
    working.stop().await;
}

on_each!(
    emitted_rows_of_a_cancelled_job_are_removed,
    a_cancellation_fences_the_chunks_it_ends,
    a_job_whose_table_was_dropped_can_be_cancelled,
    a_stalled_worker_commits_nothing_after_a_cancellation,
    a_worker_in_a_handler_commits_nothing_after_a_cancellation,
    a_cancellation_keeps_committed_changes,
);
