//! Jobs over items of the request have the same guarantees as jobs over tables.

use crate::protocol::common::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use windlass_core::{Change, DeadLetterStatus, Identity, ItemError, Job, JobId, Outcome, Request};
use windlass_engine::{Drift, Engine, ItemContext};
use windlass_store::DeadLetterFilter;
use windlass_testkit::eventually;

const ITEMS: i64 = 50;
const BAD: [i64; 2] = [7, 23];

/// A job type on the items of its request.
fn points(more: &str) -> String {
    format!(
        "[jobs.JOB]\nsource.connection = \"app\"\nsource.items = true\nsource.key = [\"id\"]\n\
         retry.attempts = 3\nretry.backoff = \"1ms\"\nstep.handler = \"work\"\n{more}\n"
    )
}

/// Fifty items in several chunks and commits. Two of them are bad.
fn request_of(items: i64) -> Request {
    // Not in the order of their keys.
    let item = |n: i64| {
        let id = (n * 7) % items + 1;
        json!({"id": id, "bad": BAD.contains(&id), "deep": {"of": [id, null, 1.5]}})
    };
    Request {
        items: Some((0..items).map(item).collect()),
        params: [("fileId".to_owned(), json!("a"))].into(),
        ..Request::new("JOB")
    }
}

#[derive(serde::Deserialize)]
struct Point {
    id: i64,
    bad: bool,
}

type Seen = Arc<Mutex<BTreeMap<i64, Vec<String>>>>;

/// An engine whose handler logs each item. It fails the bad ones until they are repaired, and the fifth item the
/// first time.
async fn engine(fixture: &EngineFixture, more: &str) -> (Engine, Seen, Arc<Mutex<bool>>) {
    fixture.app.run("CREATE TABLE log (visit bigint NOT NULL, what text)").await;
    let (seen, mended) = (Seen::default(), Arc::new(Mutex::new(false)));
    let (of_handler, is_mended) = (seen.clone(), mended.clone());
    let handler = move |point: Point, context: ItemContext| {
        let mut seen = of_handler.lock().unwrap();
        seen.entry(point.id).or_default().push(context.idempotency_key());
        let mended = *is_mended.lock().unwrap();
        let done = match point {
            Point { bad: true, id } if !mended => Err(ItemError::permanent(format!("{id} is bad"))),
            Point { id: 5, .. } if context.attempt() == 1 => Err(ItemError::transient("not yet")),
            Point { id, .. } => {
                Ok(Outcome::from(Change::default().insert("log", [("visit", id.into())])))
            }
        };
        async move { done }
    };
    let built = fixture.builder(&points(more)).handler("work", handler).connect().await.unwrap();
    (built, seen, mended)
}

async fn submit_items(engine: &Engine, items: i64) -> JobId {
    engine.submit(request_of(items), Identity::default()).await.unwrap().id()
}

async fn redrive(engine: &Engine, job: JobId) -> Job {
    let filter = DeadLetterFilter { job: Some(job), ..DeadLetterFilter::default() };
    let redriven = engine.redrive(&filter).await.unwrap();
    assert_eq!(redriven.len(), 1);
    work(engine, redriven[0].job_id).await
}

pub(crate) async fn each_item_is_worked_once_and_a_bad_one_is_a_dead_letter_with_the_whole_item(
    fixture: EngineFixture,
) {
    let (engine, seen, _) = engine(&fixture, "chunk.items = 8\nchunk.commit = 3").await;
    let job = submit_items(&engine, ITEMS).await;
    let job = work(&engine, job).await;
    proven(&engine, &job).await;
    assert_eq!((job.items.total, job.items.processed, job.items.dead), (ITEMS, ITEMS - 2, 2));
    assert!(job.chunks.total >= 7, "{:?}", job.chunks);
    assert_eq!(job.request.items, None, "a listing does not carry the items");
    assert_eq!(engine.audit(job.id).await.unwrap().drift, Some(Drift::default()));
    fixture.logged_once(ITEMS - 2).await;
    let found = letters(&engine, job.id).await;
    assert_eq!(keys(&found), BAD);
    assert_eq!(found[0].error, "7 is bad");
    let whole = json!({"id": 7, "bad": true, "deep": {"of": [7, null, 1.5]}});
    assert_eq!(found[0].record, whole, "the complete original");
    assert_eq!(seen.lock().unwrap()[&5].len(), 2, "tried again");
}

pub(crate) async fn a_redrive_uses_the_items_of_the_first_job(fixture: EngineFixture) {
    let (engine, seen, mended) = engine(&fixture, "chunk.items = 8").await;
    let first = submit_items(&engine, ITEMS).await;
    work(&engine, first).await;
    let again = redrive(&engine, first).await;
    assert_eq!((again.items.total, again.items.dead), (2, 2));
    assert_eq!(keys(&letters(&engine, first).await), BAD, "the same letters");
    *mended.lock().unwrap() = true;
    let last = redrive(&engine, first).await;
    assert_eq!((last.items.total, last.items.processed), (2, 2));
    proven(&engine, &last).await;
    fixture.logged_once(ITEMS).await;
    let letters = letters(&engine, first).await;
    assert!(letters.iter().all(|letter| letter.status == DeadLetterStatus::Reprocessed));
    for (id, keys) in seen.lock().unwrap().iter() {
        assert!(keys.iter().all(|key| *key == keys[0]), "{id} has several idempotency keys");
    }
}

pub(crate) async fn items_of_one_chunk_are_planned_by_their_submit(fixture: EngineFixture) {
    let (engine, ..) = engine(&fixture, "chunk.items = 10").await;
    let chunks_of = async |request| {
        let id = engine.submit(request, Identity::default()).await.unwrap().id();
        (id, engine.store().chunks(id, None, None, 10).await.unwrap().len())
    };
    let (first, chunks) = chunks_of(request_of(10)).await;
    assert_eq!(chunks, 1);
    assert_eq!(chunks_of(request_of(11)).await.1, 0);
    let after = Request { after: Some(vec![first]), ..request_of(10) };
    assert_eq!(chunks_of(after).await.1, 0, "a waiting job has nothing open but its plan");
}

pub(crate) async fn a_dry_run_changes_nothing(fixture: EngineFixture) {
    let (engine, ..) = engine(&fixture, "").await;
    let dry = engine.dry_run(request_of(ITEMS), Identity::default()).await.unwrap();
    assert_eq!((dry.records, dry.sample.len()), (ITEMS, 5));
    assert_eq!(dry.sample[0].inserts[0].table, "log");
    assert_eq!(fixture.int("SELECT count(*) FROM log").await, 0);
}

pub(crate) async fn an_update_of_an_item_is_a_dead_letter_with_the_reason(fixture: EngineFixture) {
    let handler = async |_: Json, _| Ok(Outcome::set("name", "x"));
    let engine = fixture.builder(&points("")).handler("work", handler).connect().await.unwrap();
    let job = submit_items(&engine, 3).await;
    let job = work(&engine, job).await;
    proven(&engine, &job).await;
    assert_eq!((job.items.processed, job.items.dead), (0, 3));
    let letters = letters(&engine, job.id).await;
    assert!(letters[0].error.contains("no table to write them back to"), "{}", letters[0].error);
}

pub(crate) async fn a_job_continues_after_a_lease_is_lost(fixture: EngineFixture) {
    let (engine, ..) = engine(&fixture, "chunk.items = 8\nchunk.commit = 3").await;
    let job = submit_items(&engine, ITEMS).await;
    plan_job(&engine, job).await;
    // Claimed by a worker that never continues.
    let lost = engine.store().lease_chunks(&by_hand(job), 2).await.unwrap();
    assert_eq!(lost.len(), 2);
    fixture.expire("windlass_chunks").await;
    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    fixture.logged_once(ITEMS - 2).await;
}

/// The table of deferred items refuses a dead letter. The error is reported, nothing is lost, and the rest of the job
/// continues. After a repair, a retry completes the job.
pub(crate) async fn a_dead_letter_that_cannot_be_written_is_reported_and_not_lost(
    fixture: EngineFixture,
) {
    let (engine, ..) = engine(&fixture, "chunk.items = 8").await;
    engine.connection("app").unwrap().prepare().await.unwrap();
    let refuse = fixture.spell(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'no letters today'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred FOR EACH ROW \
             WHEN (NEW.state = 'dead') EXECUTE FUNCTION refuse()",
        "CREATE TRIGGER refuse BEFORE INSERT ON windlass_deferred WHEN NEW.state = 'dead' \
             BEGIN SELECT RAISE(ABORT, 'no letters today'); END",
    );
    fixture.app.run(refuse).await;
    let job = submit_items(&engine, ITEMS).await;
    let worker = Working::start(&engine, "worker", 2);
    let said = async || {
        let job = engine.job(job).await.unwrap();
        job.chunks.completed + job.chunks.failed == job.chunks.total
            && job.chunks.failed > 0
            && job.status.is_final()
    };
    eventually("the chunks with bad items are given up", PATIENCE, said).await;
    let failed = engine.job(job).await.unwrap();
    let loud = failed.error.as_deref().unwrap_or_default();
    assert!(loud.contains("no letters today"), "it is loud: {failed:?}");
    assert!(failed.chunks.completed > 0, "the others went on");
    assert_eq!(letters(&engine, job).await.len(), 0);
    fixture
        .app
        .run(fixture.spell("DROP TRIGGER refuse ON windlass_deferred", "DROP TRIGGER refuse"))
        .await;
    engine.retry(job).await.unwrap();
    eventually("the job ends", PATIENCE, async || engine.job(job).await.unwrap().status.is_final())
        .await;
    worker.stop().await;
    proven(&engine, &engine.job(job).await.unwrap()).await;
    assert_eq!(keys(&letters(&engine, job).await), BAD);
    fixture.logged_once(ITEMS - 2).await;
}

on_both!(
    each_item_is_worked_once_and_a_bad_one_is_a_dead_letter_with_the_whole_item,
    a_redrive_uses_the_items_of_the_first_job,
    items_of_one_chunk_are_planned_by_their_submit,
    a_dry_run_changes_nothing,
    an_update_of_an_item_is_a_dead_letter_with_the_reason,
    a_job_continues_after_a_lease_is_lost,
    a_dead_letter_that_cannot_be_written_is_reported_and_not_lost,
);
