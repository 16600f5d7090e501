//! An urgent job goes before everything less urgent, including chunks that a worker has leased ahead.

use crate::protocol::common::*;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use windlass_core::{JobId, Outcome, Request};
use windlass_engine::Engine;
use windlass_testkit::eventually;

const ROWS: i64 = 200;
/// The first record of the urgent job.
const URGENT: i64 = 201;

async fn submit_with(engine: &Engine, job_type: &str, priority: u8) -> JobId {
    // One segment, so that chunks are planned and leased in the order of their ids.
    let (priority, parallel_segments) = (Some(priority), Some(1));
    let request = Request { priority, parallel_segments, ..Request::new(job_type) };
    engine.submit(request, Engine::local_identity()).await.unwrap().id()
}

/// Two job types with a handler that notes the id of each record. It needs a permit for each; `permits` are there at first.
async fn noting(
    fixture: &EngineFixture,
    permits: usize,
) -> (Engine, Arc<Semaphore>, Arc<Mutex<Vec<i64>>>) {
    let many = job(HANDLER, &format!("chunk.items = 1\nsource.where = \"id <= {ROWS}\""));
    let urgent = job(HANDLER, &format!("chunk.items = 1\nsource.where = \"id >= {URGENT}\""));
    let jobs = many + &urgent.replace("jobs.JOB", "jobs.URGENT");
    let (permits, noted) = (Arc::new(Semaphore::new(permits)), Arc::new(Mutex::new(Vec::new())));
    let (take, note) = (permits.clone(), noted.clone());
    let handler = move |visit: Visit, _| {
        let (take, note) = (take.clone(), note.clone());
        async move {
            take.acquire().await.unwrap().forget();
            note.lock().unwrap().push(visit.id);
            Ok(Outcome::Skip)
        }
    };
    (fixture.builder(&jobs).handler("work", handler).connect().await.unwrap(), permits, noted)
}

/// A worker with one slot, which waits in the middle of a job of low priority and has leased more of its chunks ahead.
struct BusyWorker {
    engine: Engine,
    permits: Arc<Semaphore>,
    noted: Arc<Mutex<Vec<i64>>>,
    many: JobId,
    /// Records that the handler has finished. It waits in the next one.
    finished: usize,
    worker: Working,
}

async fn busy_worker(fixture: &EngineFixture) -> BusyWorker {
    let mut finished = 60;
    let (engine, permits, noted) = noting(fixture, finished).await;
    let many = submit_with(&engine, "JOB", 1).await;
    plan_job(&engine, many).await;
    let worker = Working::start(&engine, "worker", 1);
    loop {
        let waits =
            async || noted.lock().unwrap().len() == finished && permits.available_permits() == 0;
        eventually("the slot waits in a record", PATIENCE, waits).await;
        // Every chunk that was ever leased is processing or completed, and has one record.
        let chunks = engine.job(many).await.unwrap().chunks;
        if chunks.processing + chunks.completed > finished as i64 + 1 {
            break;
        }
        // Chunks are leased ahead only when the last ones were fast, so let it do another one.
        finished += 1;
        assert!((finished as i64) < ROWS - 20, "the worker leases nothing ahead");
        permits.add_permits(1);
    }
    BusyWorker { engine, permits, noted, many, finished, worker }
}

async fn processing(engine: &Engine, job: JobId) -> i64 {
    engine.job(job).await.unwrap().chunks.processing
}

pub(crate) async fn an_urgent_job_goes_before_chunks_that_were_leased_ahead(
    fixture: EngineFixture,
) {
    fixture.visits(URGENT).await;
    let BusyWorker { engine, permits, noted, many, finished, worker } = busy_worker(&fixture).await;
    let urgent = submit_with(&engine, "URGENT", 9).await;
    let leased = async || processing(&engine, urgent).await == 1;
    eventually("the urgent chunk is leased while the slot is busy", PATIENCE, leased).await;
    permits.add_permits(1000);
    ended(&engine, urgent).await;
    let done = ended(&engine, many).await;
    worker.stop().await;
    proven(&engine, &done).await;
    // The record that the slot waited in comes first, then the urgent one.
    assert_eq!(noted.lock().unwrap()[finished + 1], URGENT);
}

/// One process does not take all of an urgent job, so that other processes can work on it too.
pub(crate) async fn a_busy_worker_leases_exactly_one_urgent_chunk_per_slot(fixture: EngineFixture) {
    fixture.visits(URGENT + 20).await;
    let BusyWorker { engine, permits, worker, .. } = busy_worker(&fixture).await;
    let urgent = submit_with(&engine, "URGENT", 9).await;
    let planned = async |id| {
        let planned = async || engine.job(id).await.unwrap().chunks.total > 20;
        eventually("the job is planned", PATIENCE, planned).await;
    };
    planned(urgent).await;
    let leased = async || processing(&engine, urgent).await > 0;
    eventually("an urgent chunk is leased while the slot is busy", PATIENCE, leased).await;
    // Each newly planned job makes the worker look for urgent chunks again.
    for _ in 0..3 {
        planned(submit_with(&engine, "JOB", 0).await).await;
    }
    assert_eq!(processing(&engine, urgent).await, 1, "urgent chunks leased for one slot");
    permits.add_permits(10_000);
    let done = ended(&engine, urgent).await;
    worker.stop().await;
    proven(&engine, &done).await;
}

on_both!(
    an_urgent_job_goes_before_chunks_that_were_leased_ahead,
    a_busy_worker_leases_exactly_one_urgent_chunk_per_slot,
);
