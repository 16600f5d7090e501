//! An urgent job goes before everything that is less urgent, also before what a worker has claimed
//! ahead and before a table that is being cut.

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
    // In one segment, so that there is one chunk of one record.
    let (priority, parallel_segments) = (Some(priority), Some(1));
    let request = Request { priority, parallel_segments, ..Request::new(job_type) };
    engine.submit(request, Engine::local_identity()).await.unwrap().id()
}

/// Two job types with a handler that notes each record, and does so many of them at first.
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

/// One slot that is held up in the middle of a job that is not urgent.
struct Busy {
    engine: Engine,
    permits: Arc<Semaphore>,
    noted: Arc<Mutex<Vec<i64>>>,
    many: JobId,
    worker: Working,
}

async fn busy(fixture: &EngineFixture) -> Busy {
    let (engine, permits, noted) = noting(fixture, 60).await;
    let many = submit_with(&engine, "JOB", 1).await;
    load(&engine, many).await;
    let worker = Working::start(&engine, "worker", 1);
    let blocked = async || noted.lock().unwrap().len() == 60 && permits.available_permits() == 0;
    eventually("the slot is busy", PATIENCE, blocked).await;
    Busy { engine, permits, noted, many, worker }
}

pub(crate) async fn what_was_claimed_ahead_waits(fixture: EngineFixture) {
    fixture.visits(URGENT).await;
    let Busy { engine, permits, noted, many, worker } = busy(&fixture).await;

    let urgent = submit_with(&engine, "URGENT", 9).await;
    // Claimed while the slot is busy, unless the worker was too slow to claim anything ahead.
    let claimed = async || {
        let urgent = engine.job(urgent).await.unwrap().chunks;
        let ahead = engine.job(many).await.unwrap().chunks.processing > 1;
        urgent.processing == 1 || urgent.total > 0 && !ahead
    };
    eventually("the urgent chunk is claimed", PATIENCE, claimed).await;
    permits.add_permits(1000);
    ended(&engine, urgent).await;
    let done = ended(&engine, many).await;
    worker.stop().await;
    proven(&engine, &done).await;
    assert_eq!(noted.lock().unwrap()[61], URGENT, "only the record at work came before it");
}

/// One process does not take all of an urgent job: others want some too.
pub(crate) async fn no_more_is_claimed_than_there_are_slots(fixture: EngineFixture) {
    fixture.visits(URGENT + 20).await;
    let Busy { engine, permits, worker, .. } = busy(&fixture).await;
    let urgent = submit_with(&engine, "URGENT", 9).await;
    let loaded = async |id| {
        let loaded = async || engine.job(id).await.unwrap().chunks.total > 20;
        eventually("it is loaded", PATIENCE, loaded).await;
    };
    loaded(urgent).await;
    // Every load makes the worker look again.
    for _ in 0..3 {
        loaded(submit_with(&engine, "JOB", 0).await).await;
    }
    let held = engine.job(urgent).await.unwrap().chunks.processing;
    assert!(held <= 1, "{held} chunks for one slot");
    permits.add_permits(10_000);
    let done = ended(&engine, urgent).await;
    worker.stop().await;
    proven(&engine, &done).await;
}

on_both!(what_was_claimed_ahead_waits, no_more_is_claimed_than_there_are_slots);
