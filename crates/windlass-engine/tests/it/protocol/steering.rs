//! Pause, resume, the failure budget, and retrying failed chunks.

use crate::protocol::common::*;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;
use windlass_core::{Change, ChunkStatus, ItemError, JobStatus, Outcome};
use windlass_engine::{Engine, Step, StepBatch, StepError};
use windlass_testkit::eventually;

const ROWS: i64 = 100;

pub(crate) async fn a_job_over_its_failure_budget_pauses_and_resuming_grants_another(
    fixture: EngineFixture,
) {
    let engine = failing(&fixture, "failures = { budget = 3, on_exceeded = \"pause\" }").await;
    let paused = run(&engine).await;
    assert_eq!(paused.status, JobStatus::Paused);
    assert!(paused.error.unwrap().contains("budget"));
    // One dead letter in every chunk, and more than three in total.
    assert!((4..10).contains(&paused.items.dead), "{:?}", paused.items);

    // Each resume grants three more, so ten chunks pause at most two more times.
    let mut pauses = 1;
    loop {
        engine.resume(paused.id).await.unwrap();
        let job = work(&engine, paused.id).await;
        if job.status == JobStatus::Completed {
            proven(&engine, &job).await;
            assert_eq!((job.items.processed, job.items.dead), (90, 10));
            break;
        }
        pauses += 1;
        assert!(pauses < 4, "{job:?}");
    }
    assert!(pauses > 1, "the second budget is no larger than the first");
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 90);
    assert_eq!(letters(&engine, paused.id).await.len(), 10);
}

pub(crate) async fn a_job_over_its_failure_budget_fails_if_configured_so(fixture: EngineFixture) {
    let engine = failing(&fixture, "failures = { budget = 3, on_exceeded = \"fail\" }").await;
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("budget"));
    assert!(failed.items.dead >= 4, "{:?}", failed.items);
}

pub(crate) async fn a_job_within_its_failure_budget_completes(fixture: EngineFixture) {
    let engine = failing(&fixture, "failures = { budget = 10, on_exceeded = \"fail\" }").await;
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (90, 10));
}

pub(crate) async fn a_paused_job_continues_where_it_was(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let permits = Arc::new(Semaphore::new(25));
    let engine = metered(&fixture, &permits, "chunk.items = 10\nchunk.commit = 5").await;
    let job = submit(&engine).await;
    let worker = Working::start(&engine, "worker", 2);
    let used = async || permits.available_permits() == 0;
    eventually("the worker is in the middle", PATIENCE, used).await;

    engine.pause(job).await.unwrap();
    // The worker learns of it with a heartbeat. After two heartbeats it has.
    for _ in 0..2 {
        let lease = fixture.latest_lease().await;
        let beats = async || fixture.latest_lease().await > lease;
        eventually("a heartbeat is sent", PATIENCE, beats).await;
    }
    permits.add_permits(10);
    let rests = async || {
        let chunks = engine.job(job).await.unwrap().chunks;
        chunks.processing == 0
    };
    eventually("the chunks are handed back", PATIENCE, rests).await;
    let paused = engine.job(job).await.unwrap();
    assert_eq!(paused.status, JobStatus::Paused);
    let so_far = fixture.int("SELECT sum(amount) FROM visits").await;
    assert!((20..=35).contains(&so_far), "{so_far}");
    assert_eq!(paused.items.processed, so_far, "the counts of chunks in flight are told");

    permits.add_permits(1000);
    engine.resume(job).await.unwrap();
    let done = ended(&engine, job).await;
    worker.stop().await;
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(permits.available_permits(), 1035 - ROWS as usize, "no item was worked twice");
}

pub(crate) async fn a_job_paused_before_it_starts_does_nothing(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let engine = fixture.engine(&job(ADD, "")).await;
    let paused = submit(&engine).await;
    engine.pause(paused).await.unwrap();
    let other = complete(&engine).await;
    assert_eq!(other.status, JobStatus::Completed);
    assert_eq!(engine.job(paused).await.unwrap().status, JobStatus::Paused);
    fixture.each_once(ROWS).await;
    engine.resume(paused).await.unwrap();
    let done = work(&engine, paused).await;
    proven(&engine, &done).await;
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 2 * ROWS);
}

/// Two chunks fail for a while. The others continue, and a retry runs only the failed ones.
pub(crate) async fn a_retry_runs_only_the_chunks_that_failed(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let broken = Arc::new(AtomicBool::new(true));
    let step = Arc::new(Flaky { broken: broken.clone() });
    let engine = fixture.builder(&job(HANDLER, "chunk.items = 10")).step("work", step);
    let engine = engine.connect().await.unwrap();

    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!((failed.chunks.completed, failed.chunks.failed), (8, 2));
    let error = failed.error.unwrap();
    assert!(
        error.contains("8/10 chunks completed, failed: [")
            && error.contains("the service is unavailable"),
        "{error}"
    );
    let before = chunks(&engine, failed.id).await;
    for chunk in before.iter().filter(|chunk| chunk.status == ChunkStatus::Failed) {
        assert_eq!(chunk.attempts, 3);
    }

    broken.store(false, Ordering::SeqCst);
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
    for (before, after) in before.iter().zip(chunks(&engine, failed.id).await) {
        let again = before.status == ChunkStatus::Failed;
        assert_eq!(after.epoch > before.epoch, again, "chunk {}", after.chunk);
    }
}

/// The same for statements, with a database error that no value causes.
#[tokio::test]
async fn a_statement_that_fails_for_a_while_is_retried_and_then_fails_its_chunk() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(ROWS).await;
    fixture.app.run(REFUSE_ONE_ROW).await;
    let engine = fixture.engine(&job(ADD, "chunk.items = 10")).await;

    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert_eq!((failed.chunks.completed, failed.chunks.failed), (9, 1));
    assert!(failed.error.unwrap().contains("not now"));
    assert_eq!(failed.items.dead, 0, "it is not the row's fault");

    fixture.app.run("DROP TRIGGER refuse_one_row ON visits").await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
}

/// The mark is cleared when a chunk fails and when it completes.
#[tokio::test]
async fn a_failed_chunk_leaves_no_mark() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(ROWS).await;
    // Marking succeeds, the statement fails.
    let trigger = REFUSE_ONE_ROW.replace("BEFORE UPDATE ON", "BEFORE UPDATE OF amount ON");
    fixture.app.run(&trigger).await;
    let marked = format!("{ADD}\nstep.mark = \"busy\"");
    let engine = fixture.engine(&job(&marked, "chunk.items = 10")).await;
    let failed = run(&engine).await;
    assert_eq!((failed.chunks.completed, failed.chunks.failed), (9, 1));
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE busy").await, 0);
}

on_each!(
    a_job_over_its_failure_budget_pauses_and_resuming_grants_another,
    a_job_over_its_failure_budget_fails_if_configured_so,
    a_job_within_its_failure_budget_completes,
    a_paused_job_continues_where_it_was,
    a_job_paused_before_it_starts_does_nothing,
    a_retry_runs_only_the_chunks_that_failed,
);

/// Every tenth item fails permanently.
async fn failing(fixture: &EngineFixture, failures: &str) -> Engine {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, _| match visit.id % 10 {
        0 => Err(ItemError::permanent("every tenth")),
        _ => visit.done(),
    };
    let jobs = job(HANDLER, &format!("chunk.items = 10\n{failures}"));
    fixture.builder(&jobs).handler("work", handler).connect().await.unwrap()
}

/// Every item takes a permit.
async fn metered(fixture: &EngineFixture, permits: &Arc<Semaphore>, more: &str) -> Engine {
    let handler = crate::protocol::common::metered(permits);
    fixture.builder(&job(HANDLER, more)).handler("work", handler).connect().await.unwrap()
}

/// A step that fails for two whole chunks while it is broken.
struct Flaky {
    broken: Arc<AtomicBool>,
}

#[async_trait]
impl Step for Flaky {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        let ids: Vec<i64> =
            batch.items.iter().map(|item| item.record.parse::<Visit>().unwrap().id).collect();
        if self.broken.load(Ordering::SeqCst) && (ids.contains(&15) || ids.contains(&77)) {
            return Err(StepError::ChunkFailed("the service is unavailable".to_owned()));
        }
        Ok(ids.iter().map(|_| Change::default().set("amount", 1).into()).collect())
    }
}

const REFUSE_ONE_ROW: &str = "
    CREATE FUNCTION refuse_one_row() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.id = 15 THEN RAISE EXCEPTION 'not now' USING ERRCODE = '55000'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_one_row BEFORE UPDATE ON visits FOR EACH ROW EXECUTE FUNCTION refuse_one_row()";
