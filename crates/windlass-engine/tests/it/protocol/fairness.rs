//! Jobs of equal priority share the slots, and a throttled job leaves them to others.

use crate::protocol::common::*;
use std::sync::{Arc, Mutex};
use windlass_core::{JobId, JobStatus, Outcome, Request};
use windlass_engine::Engine;
use windlass_testkit::eventually;

const ROWS: i64 = 200;

async fn submit_type(engine: &Engine, job_type: &str) -> JobId {
    let request = Request { parallel_segments: Some(1), ..Request::new(job_type) };
    engine.submit(request, Engine::local_identity()).await.unwrap().id()
}

/// Counts commits of both jobs over the same time: while the first half of all records is processed, neither job has
/// more than two thirds of them.
pub(crate) async fn two_jobs_of_equal_priority_commit_at_the_same_rate(fixture: EngineFixture) {
    fixture.visits(2 * ROWS).await;
    let job_type = |name: &str, of: &str| {
        let more = format!("chunk.items = 1\nsource.where = \"{of}\"");
        job(HANDLER, &more).replace("jobs.JOB", &format!("jobs.{name}"))
    };
    let jobs =
        job_type("FIRST", &format!("id <= {ROWS}")) + &job_type("SECOND", &format!("id > {ROWS}"));
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = order.clone();
    let handler = move |visit: Visit, _| {
        let note = note.clone();
        async move {
            note.lock().unwrap().push(visit.id);
            Ok(Outcome::Skip)
        }
    };
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let jobs = [submit_type(&engine, "FIRST").await, submit_type(&engine, "SECOND").await];
    for job in jobs {
        plan_job(&engine, job).await;
    }
    let worker = Working::start(&engine, "worker", 2);
    for job in jobs {
        let done = ended(&engine, job).await;
        proven(&engine, &done).await;
    }
    worker.stop().await;
    let order = order.lock().unwrap();
    let of_first = order.iter().take(ROWS as usize).filter(|id| **id <= ROWS).count() as i64;
    assert!((ROWS / 3..=2 * ROWS / 3).contains(&of_first), "{of_first} of {ROWS}: {order:?}");
}

/// The chunks of a throttled job wait outside of their slots, so that a job without a limit proceeds meanwhile.
pub(crate) async fn a_job_at_its_rate_limit_leaves_the_slots_to_others(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let limited = job(ADD, "chunk.items = 1\nthroughput.items_per_second = 1");
    let free = job(ADD, "chunk.items = 1").replace("jobs.JOB", "jobs.FREE");
    let engine = fixture.engine(&(limited + &free)).await;
    let limited = submit(&engine).await;
    plan_job(&engine, limited).await;
    let worker = Working::start(&engine, "worker", 2);
    let throttled = async || {
        let job = engine.job(limited).await.unwrap();
        job.chunks.processing >= 2 && job.waits_for.as_deref() == Some("rate")
    };
    eventually("two chunks wait for the rate limit", PATIENCE, throttled).await;
    // All of it would take more than three minutes at the limit.
    let free = submit_type(&engine, "FREE").await;
    let done = ended(&engine, free).await;
    let throttled = engine.job(limited).await.unwrap();
    assert_eq!(done.status, JobStatus::Completed, "{done:?}");
    assert_eq!(throttled.status, JobStatus::Processing, "{throttled:?}");
    assert!(throttled.items.processed < done.items.processed / 2, "{throttled:?}");
    proven(&engine, &done).await;
    // Without the limit the rest is worked, each record once.
    let unlimited = Some(windlass_store::UNLIMITED);
    engine.store().set_throughput("JOB", None, unlimited).await.unwrap();
    let done = ended(&engine, limited).await;
    worker.stop().await;
    proven(&engine, &done).await;
    assert_eq!(fixture.int("SELECT min(amount) FROM visits").await, 2);
    assert_eq!(fixture.int("SELECT max(amount) FROM visits").await, 2);
}

/// A worker that stops while its chunks are throttled hands them back.
pub(crate) async fn throttled_chunks_are_handed_back_at_shutdown(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let engine =
        fixture.engine(&job(ADD, "chunk.items = 1\nthroughput.items_per_second = 1")).await;
    let id = submit(&engine).await;
    plan_job(&engine, id).await;
    let worker = Working::start(&engine, "worker", 2);
    let throttled = async || engine.job(id).await.unwrap().chunks.processing >= 2;
    eventually("two chunks wait for the rate limit", PATIENCE, throttled).await;
    let stats = worker.stop().await;
    assert!(stats.handed_back >= 1, "{stats:?}");
    let job = engine.job(id).await.unwrap();
    assert_eq!((job.chunks.processing, job.chunks.failed), (0, 0), "{job:?}");
    assert_eq!(job.waits_for.as_deref(), Some("slots"));
}

/// `FREE` on a SQLite file of its own, for an engine whose other job type waits.
async fn free_job() -> (EngineFixture, String) {
    let other = EngineFixture::sqlite().await;
    other.visits(ROWS).await;
    let free = job(ADD, "chunk.items = 1").replace("jobs.JOB", "jobs.FREE");
    let connection = format!("[connections.other]\nurl = \"{}\"\n", other.app.url());
    (other, connection + &free.replace("\"app\"", "\"other\""))
}

/// The chunks of a job on an unhealthy database wait outside of their slots, and say so.
pub(crate) async fn a_job_that_waits_for_health_leaves_the_slots_to_others(fixture: EngineFixture) {
    // More than a worker does before the probe has slowed it down.
    let rows = 5 * ROWS;
    fixture.visits(rows).await;
    fixture.app.run("CREATE TABLE health (number bigint); INSERT INTO health VALUES (20)").await;
    let health = "health = { sql = \"SELECT number FROM health\", limit = 5, every = \"100ms\" }\n";
    let (other, free) = free_job().await;
    let engine = fixture.engine(&(health.to_owned() + &job(ADD, "chunk.items = 1") + &free)).await;
    let throttled = submit(&engine).await;
    plan_job(&engine, throttled).await;
    let worker = Working::start(&engine, "worker", 1);
    let slowest = async || {
        let job = engine.job(throttled).await.unwrap();
        let reason = job.error.unwrap_or_default();
        job.waits_for.as_deref() == Some("health")
            && reason.contains("throttled to 1/1024 of full speed")
    };
    eventually("the job waits for health, as slow as can be", PATIENCE, slowest).await;
    // There is one slot. At this speed the throttled job would hold it for hours.
    let free = submit_type(&engine, "FREE").await;
    let done = ended(&engine, free).await;
    assert_eq!(done.status, JobStatus::Completed, "{done:?}");
    other.each_once(ROWS).await;
    let waiting = engine.job(throttled).await.unwrap();
    assert_eq!(waiting.status, JobStatus::Processing);
    assert_eq!(waiting.waits_for.as_deref(), Some("health"));
    assert!(waiting.items.processed < rows, "{waiting:?}");
    fixture.app.run("UPDATE health SET number = 0").await;
    let done = ended(&engine, throttled).await;
    worker.stop().await;
    proven(&engine, &done).await;
    fixture.each_once(rows).await;
}

/// The chunks of a job whose step is unavailable leave their slots, and the job says so.
pub(crate) async fn a_job_whose_step_is_unavailable_leaves_the_slots_to_others(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    // Nothing listens on this port.
    let step = "step.http = \"http://127.0.0.1:1/\"\nstep.version = \"version\"";
    let (other, free) = free_job().await;
    let engine = fixture.engine(&(job(step, "chunk.items = 50") + &free)).await;
    let waiting = submit(&engine).await;
    plan_job(&engine, waiting).await;
    let worker = Working::start(&engine, "worker", 1);
    let unavailable = async || {
        let job = engine.job(waiting).await.unwrap();
        let reason = job.error.unwrap_or_default();
        job.waits_for.as_deref() == Some("step unavailable")
            && reason.contains("cannot connect to the endpoint")
    };
    eventually("the job waits for its step and says why", PATIENCE, unavailable).await;
    let free = submit_type(&engine, "FREE").await;
    let done = ended(&engine, free).await;
    assert_eq!(done.status, JobStatus::Completed, "{done:?}");
    other.each_once(ROWS).await;
    let shown = engine.job(waiting).await.unwrap();
    assert_eq!((shown.status, shown.items.done()), (JobStatus::Processing, 0), "{shown:?}");
    worker.stop().await;
}

on_both!(
    a_job_that_waits_for_health_leaves_the_slots_to_others,
    a_job_whose_step_is_unavailable_leaves_the_slots_to_others,
    two_jobs_of_equal_priority_commit_at_the_same_rate,
    a_job_at_its_rate_limit_leaves_the_slots_to_others,
    throttled_chunks_are_handed_back_at_shutdown,
);
