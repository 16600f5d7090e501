//! The last commit of a chunk runs outside of the chunk's slot: the step works on the next chunk meanwhile, but never
//! on two chunks in one slot. Chunks that wait for a slot are read ahead.

use crate::protocol::common::*;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use windlass_core::{JobId, JobStatus};
use windlass_drivers::{Postgres, Transaction};
use windlass_engine::Engine;
use windlass_testkit::eventually;

/// A job with chunks of one visit each, and a handler that notes when it begins and ends. It needs a permit for each
/// visit.
struct Overlap {
    fixture: EngineFixture,
    engine: Engine,
    permits: Arc<Semaphore>,
    events: Arc<Mutex<Vec<String>>>,
    job: JobId,
}

impl Overlap {
    /// The job, planned.
    async fn of(visits: i64, permits: usize, more: &str) -> Overlap {
        let fixture = EngineFixture::postgres().await;
        fixture.visits(visits).await;
        let (permits, events) =
            (Arc::new(Semaphore::new(permits)), Arc::<Mutex<Vec<_>>>::default());
        let (take, note) = (permits.clone(), events.clone());
        let handler = move |visit: Visit, _| {
            let (take, note) = (take.clone(), note.clone());
            async move {
                note.lock().unwrap().push(format!("begin {}", visit.id));
                take.acquire().await.unwrap().forget();
                note.lock().unwrap().push(format!("end {}", visit.id));
                visit.done()
            }
        };
        let jobs = job(HANDLER, &format!("chunk.items = 1\n{more}"));
        let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
        let job = submit(&engine).await;
        plan_job(&engine, job).await;
        Overlap { fixture, engine, permits, events, job }
    }

    /// Waits until the second of two chunks is in the handler while the first one is committed. Returns the worker with
    /// one slot, and the transaction that the commit waits for.
    async fn begin() -> (Overlap, Working, Transaction) {
        let overlap = Overlap::of(2, 1, "").await;
        let other = overlap.other_writer().await;
        let worker = Working::start(&overlap.engine, "worker", 1);
        overlap.noted("begin 2").await;
        (overlap, worker, other)
    }

    /// A transaction that has changed the first visit, so that the commit of its chunk waits.
    async fn other_writer(&self) -> Transaction {
        let app = Postgres::new(&self.fixture.app.url(), 1).unwrap();
        let other = app.transaction("").await.unwrap();
        let raise = "UPDATE visits SET year = 7, version = version + 1 WHERE id = 1";
        other.execute(raise, &[]).await.unwrap();
        other
    }

    async fn noted(&self, event: &str) {
        let noted = async || self.events().iter().any(|noted| noted == event);
        eventually(event, PATIENCE, noted).await;
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    /// The job completes, and every visit is changed once.
    async fn completes(&self, visits: i64) {
        let done = ended(&self.engine, self.job).await;
        proven(&self.engine, &done).await;
        self.fixture.each_once(visits).await;
        self.fixture.logged_once(visits).await;
    }
}

#[tokio::test]
async fn the_step_works_on_the_next_chunk_while_the_last_one_is_committed() {
    let (overlap, worker, other) = Overlap::begin().await;
    assert_eq!(overlap.events(), ["begin 1", "end 1", "begin 2"]);
    assert_eq!(overlap.fixture.int("SELECT sum(amount) FROM visits").await, 0);
    other.rollback().await.unwrap();
    overlap.permits.add_permits(1);
    overlap.completes(2).await;
    worker.stop().await;
}

/// The other writer's change is committed, so the item is read and worked again: when the slot is free.
#[tokio::test]
async fn a_chunk_with_a_conflict_waits_for_a_slot_again() {
    let (overlap, worker, other) = Overlap::begin().await;
    other.commit().await.unwrap();
    let conflicts = "SELECT sum(conflicts) FROM windlass_ledger";
    let conflict = async || overlap.fixture.int(conflicts).await == 1;
    eventually("the conflict is committed", PATIENCE, conflict).await;
    overlap.permits.add_permits(2);
    overlap.completes(2).await;
    worker.stop().await;
    let order = ["begin 1", "end 1", "begin 2", "end 2", "begin 1", "end 1"];
    assert_eq!(overlap.events(), order);
    assert_eq!(overlap.fixture.int("SELECT year FROM visits WHERE id = 1").await, 7);
}

/// A worker that stops waits for the chunk in its slot and for the one outside of it.
#[tokio::test]
async fn a_worker_that_stops_finishes_the_last_commit() {
    let (overlap, worker, other) = Overlap::begin().await;
    worker.handle.shutdown();
    other.rollback().await.unwrap();
    overlap.permits.add_permits(1);
    let stats = worker.stop().await;
    assert_eq!(stats.completed + stats.handed_back, 2, "{stats:?}");
    assert_eq!(overlap.engine.job(overlap.job).await.unwrap().chunks.processing, 0);
    overlap.fixture.each_once(2).await;
    // The next worker finds everything committed, and calls the handler no more.
    let worker = Working::start(&overlap.engine, "next", 1);
    overlap.completes(2).await;
    worker.stop().await;
}

/// What was committed when the job was cancelled counts, and nothing else is changed.
#[tokio::test]
async fn a_cancellation_waits_for_the_last_commit() {
    let (overlap, worker, other) = Overlap::begin().await;
    let cancel = overlap.engine.cancel(overlap.job);
    let finish = async {
        other.rollback().await.unwrap();
        overlap.permits.add_permits(1);
    };
    let (cancelled, ()) = tokio::join!(cancel, finish);
    cancelled.unwrap();
    let done = ended(&overlap.engine, overlap.job).await;
    worker.stop().await;
    assert_eq!(done.status, JobStatus::Cancelled);
    assert_eq!(done.chunks.processing, 0, "{done:?}");
    let changed = overlap.fixture.int("SELECT sum(amount) FROM visits").await;
    assert_eq!(overlap.engine.job(overlap.job).await.unwrap().items.processed, changed);
    overlap.fixture.logged_once(changed).await;
}

/// A chunk outside of its slot still counts for `throughput.concurrency`.
#[tokio::test]
async fn a_last_commit_counts_for_the_concurrency_of_the_job_type() {
    let overlap = Overlap::of(2, 2, "throughput.concurrency = 1").await;
    let other = overlap.other_writer().await;
    let worker = Working::start(&overlap.engine, "worker", 2);
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let waits = async || overlap.fixture.int(waits).await == 1;
    eventually("the last commit waits for the other writer", PATIENCE, waits).await;
    let chunks = overlap.engine.job(overlap.job).await.unwrap().chunks;
    assert_eq!((chunks.processing, chunks.pending), (1, 1));
    assert_eq!(overlap.events(), ["begin 1", "end 1"]);
    other.rollback().await.unwrap();
    overlap.completes(2).await;
    worker.stop().await;
}

/// Short chunks are leased and read ahead. Records that are changed after that are found by their guard.
#[tokio::test]
async fn changes_after_a_batch_was_read_ahead_survive() {
    let overlap = Overlap::of(60, 20, "").await;
    let worker = Working::start(&overlap.engine, "worker", 1);
    overlap.noted("begin 21").await;
    let raise = "UPDATE visits SET year = 7, version = version + 1 WHERE id > 21";
    overlap.fixture.app.run(raise).await;
    overlap.permits.add_permits(1000);
    overlap.completes(60).await;
    worker.stop().await;
    assert_eq!(overlap.fixture.int("SELECT count(*) FROM visits WHERE year = 7").await, 39);
}
