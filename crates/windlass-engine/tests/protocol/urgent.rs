//! An urgent job goes before everything that is less urgent, also before what a worker has claimed
//! ahead and before a table that is being cut.

use crate::common::*;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use windlass_core::{JobId, Outcome, Request};
use windlass_engine::Engine;
use windlass_testkit::eventually;

const ROWS: i64 = 200;
/// The one record of the urgent job.
const URGENT: i64 = 201;

async fn submit_with(engine: &Engine, job_type: &str, priority: u8) -> JobId {
    let request = Request { priority: Some(priority), ..Request::new(job_type) };
    engine.submit(request, Engine::local_identity()).await.unwrap().id()
}

/// Two job types with a handler that notes each record, and does so many of them at first.
async fn noting(world: &World, permits: usize) -> (Engine, Arc<Semaphore>, Arc<Mutex<Vec<i64>>>) {
    let many = job(HANDLER, &format!("chunk.items = 1\nsource.where = \"id <= {ROWS}\""));
    let urgent = job(HANDLER, &format!("source.where = \"id = {URGENT}\""));
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
    (world.builder(&jobs).handler("work", handler).connect().await.unwrap(), permits, noted)
}

async fn what_was_claimed_ahead_waits(world: World) {
    world.visits(URGENT).await;
    let (engine, permits, noted) = noting(&world, 60).await;
    let many = submit_with(&engine, "JOB", 1).await;
    load(&engine, many).await;
    let worker = Working::start(&engine, "worker", 1);
    let blocked = async || noted.lock().unwrap().len() == 60 && permits.available_permits() == 0;
    eventually("the slot is busy", PATIENCE, blocked).await;

    let urgent = submit_with(&engine, "URGENT", 9).await;
    // Claimed while the slot is busy, unless the worker was too slow to claim anything ahead.
    let claimed = async || {
        engine.job(urgent).await.unwrap().chunks.processing == 1
            || engine.job(many).await.unwrap().chunks.processing == 1
    };
    eventually("the urgent chunk is claimed", PATIENCE, claimed).await;
    permits.add_permits(1000);
    ended(&engine, urgent).await;
    let done = ended(&engine, many).await;
    worker.stop().await;
    proven(&engine, &done).await;
    assert_eq!(noted.lock().unwrap()[61], URGENT, "only the record at work came before it");
}

on_both!(what_was_claimed_ahead_waits);
