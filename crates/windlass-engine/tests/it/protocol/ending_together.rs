//! The last two chunks of a job end at the same moment. Exactly one of them ends the job.

use crate::protocol::common::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Barrier;
use windlass_core::{Change, JobId};

const JOBS: usize = 20;

pub(crate) async fn a_job_whose_last_chunks_end_together_completes_once(fixture: EngineFixture) {
    fixture.visits(2).await;
    // Each waits for the other, so that both chunks of a job are committed at about the same time.
    let join_points: Arc<Mutex<HashMap<JobId, Arc<Barrier>>>> = Arc::default();
    let work = move |visit: Visit, context: windlass_engine::ItemContext| {
        let mut join_points = join_points.lock().unwrap();
        let join_point =
            join_points.entry(context.job_id()).or_insert_with(|| Arc::new(Barrier::new(2)));
        let join_point = join_point.clone();
        async move {
            join_point.wait().await;
            // Only inserts: the jobs share the rows and must not conflict.
            Ok(Change::default().insert("log", [("visit", visit.id.into())]).into())
        }
    };
    let jobs = job(HANDLER, "chunk.items = 1");
    let engine = fixture.builder(&jobs).handler("work", work.clone()).connect().await.unwrap();
    let other = fixture.builder(&jobs).handler("work", work).connect().await.unwrap();
    fixture.store.run(fixture.spell(COUNT_POSTGRES, COUNT_SQLITE)).await;
    // One job at a time: several jobs share the slots, so that the two chunks of one job would not meet.
    let workers = [Working::start(&engine, "one", 2), Working::start(&other, "other", 2)];
    for _ in 0..JOBS {
        let job = submit(&engine).await;
        let done = ended(&engine, job).await;
        proven(&engine, &done).await;
        assert_eq!((done.chunks.total, done.chunks.completed), (2, 2));
        assert_eq!((done.items.total, done.items.processed), (2, 2));
        assert!(done.finished_at.is_some());
    }
    for worker in workers {
        worker.stop().await;
    }
    assert_eq!(fixture.int("SELECT count(*) FROM log").await, 2 * JOBS as i64);
    assert_eq!(fixture.store.int("SELECT count(*) FROM ends").await, JOBS as i64);
    assert_eq!(fixture.store.int("SELECT count(DISTINCT job) FROM ends").await, JOBS as i64);
}

on_both!(a_job_whose_last_chunks_end_together_completes_once);

/// Counts how often each job becomes COMPLETED.
const COUNT_POSTGRES: &str = "
    CREATE TABLE ends (job text);
    CREATE FUNCTION note_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO ends VALUES (NEW.id); RETURN NULL; END $$;
    CREATE TRIGGER note_end AFTER UPDATE ON windlass_jobs FOR EACH ROW
    WHEN (NEW.status = 'COMPLETED' AND (OLD.status, OLD.finished_at)
        IS DISTINCT FROM (NEW.status, NEW.finished_at))
    EXECUTE FUNCTION note_end()";
const COUNT_SQLITE: &str = "
    CREATE TABLE ends (job text);
    CREATE TRIGGER note_end AFTER UPDATE ON windlass_jobs
    WHEN NEW.status = 'COMPLETED'
        AND (OLD.status IS NOT NEW.status OR OLD.finished_at IS NOT NEW.finished_at)
    BEGIN INSERT INTO ends VALUES (NEW.id); END";
