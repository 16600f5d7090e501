//! Processes that die. The child processes are this test program, started again with a role.

use crate::protocol::common::*;
use std::env;
use windlass_core::{ItemError, JobId, Outcome};
use windlass_engine::ItemContext;
use windlass_testkit::{Running, Windlass, eventually};

const ROLE: &str = "WINDLASS_TEST_ROLE";
const CONFIG: &str = "WINDLASS_TEST_CONFIG";
const JOB: &str = "WINDLASS_TEST_JOB";
/// A short lease, so that the next worker does not wait long.
const SHORT: &str = "chunk.items = 20\nchunk.lease = \"2s\"\nchunk.timeout = \"1m\"";
const ROWS: i64 = 60;
/// The item that kills its process.
const KILLER: i64 = 33;

/// The worker process of the tests below. Without a role it does nothing.
#[tokio::test]
async fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let builder = builder(&env::var(CONFIG).unwrap());
    let builder = match role.as_str() {
        "holds" => builder.handler("work", hold_first),
        _ => builder.handler("work", async |visit: Visit, _| {
            if visit.id == KILLER {
                std::process::abort();
            }
            visit.done()
        }),
    };
    let engine = builder.connect().await.unwrap();
    let job: JobId = env::var(JOB).unwrap().parse().unwrap();
    let worker = Working::start(&engine, "child", 1);
    eventually("the job ends", PATIENCE, async || engine.job(job).await.unwrap().status.is_final())
        .await;
    worker.stop().await;
}

/// The first try of every item fails. The second one, in the child process, never ends.
async fn hold_first(visit: Visit, context: ItemContext) -> Result<Outcome, ItemError> {
    match (context.attempt(), env::var(ROLE).is_ok()) {
        (1, _) => Err(ItemError::transient("not yet")),
        (_, true) => std::future::pending().await,
        (_, false) => visit.done(),
    }
}

pub(crate) async fn deferred_items_of_a_killed_process_are_finished_by_the_next(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    let jobs = job(HANDLER, SHORT);
    let engine = fixture.builder(&jobs).handler("work", hold_first).connect().await.unwrap();
    let job = submit(&engine).await;
    let killed = spawn(&fixture, &jobs, "holds", job);
    let waiting = "SELECT count(*) FROM windlass_deferred WHERE state = 'retry'";
    let held = async || fixture.int(waiting).await > 0;
    eventually("items are held", PATIENCE, held).await;
    killed.kill9();
    killed.wait().await;
    assert_eq!(
        fixture.int("SELECT sum(amount) FROM visits").await,
        0,
        "no item has been processed yet"
    );

    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS, 0));
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_deferred").await, 0);
}

pub(crate) async fn an_item_that_kills_its_process_becomes_a_dead_letter(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let jobs = job(HANDLER, SHORT);
    // This engine submits and reads. It has no handler.
    let engine = fixture.engine(&jobs).await;
    let job = submit(&engine).await;
    let mut deaths = 0;
    while !engine.job(job).await.unwrap().status.is_final() {
        assert!(deaths < 20, "the job does not end: {:#?}", chunks(&engine, job).await);
        spawn(&fixture, &jobs, "killed", job).wait().await;
        deaths += 1;
    }

    let done = engine.job(job).await.unwrap();
    proven(&engine, &done).await;
    let letters = letters(&engine, job).await;
    assert_eq!(keys(&letters), [KILLER]);
    assert!(letters[0].error.contains("the process crashed"), "{}", letters[0].error);
    assert_eq!(letters[0].record["id"], KILLER);
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, ROWS - 1);
    fixture.logged_once(ROWS - 1).await;
    let chunks = chunks(&engine, job).await;
    assert!(chunks.iter().all(|chunk| chunk.attempts == 0), "a lost lease is no failed attempt");
}

on_each!(
    deferred_items_of_a_killed_process_are_finished_by_the_next,
    an_item_that_kills_its_process_becomes_a_dead_letter,
);

fn spawn(fixture: &EngineFixture, jobs: &str, role: &str, job: JobId) -> Running {
    Windlass::new(fixture.folder.path())
        .binary(env::current_exe().unwrap())
        .env(ROLE, role)
        .env(CONFIG, fixture.toml(jobs))
        .env(JOB, job.to_string())
        .spawn(["protocol::crash::child", "--exact", "--nocapture"])
}
