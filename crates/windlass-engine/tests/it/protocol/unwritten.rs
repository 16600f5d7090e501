//! A dead letter that cannot be written: the other items of its chunk continue, the chunk fails and names the item, and
//! a retry works that item and no other.

use crate::protocol::common::*;
use std::collections::BTreeSet;
use windlass_core::{ChunkStatus, ItemError, Job, JobStatus};
use windlass_engine::Engine;

const ROWS: i64 = 30;
/// The items that fail. The ledger or the store refuses the letter of the first one.
const BAD: [i64; 2] = [13, 20];
const CHUNKS: &str = "chunk.items = 10\nchunk.commit = 4";

/// Statements that make the ledger refuse the letter of item 13, and that end this.
fn ledger_refuses(fixture: &EngineFixture) -> (&str, &str) {
    let postgres = "CREATE FUNCTION no_letter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF NEW.item_key = '[13]' THEN RAISE EXCEPTION 'no letters today'; END IF; RETURN NEW; END $$; \
        CREATE TRIGGER no_letter BEFORE INSERT ON windlass_deferred FOR EACH ROW EXECUTE FUNCTION no_letter()";
    let sqlite = "CREATE TRIGGER no_letter BEFORE INSERT ON windlass_deferred \
        WHEN NEW.item_key = '[13]' BEGIN SELECT RAISE(ABORT, 'no letters today'); END";
    let mariadb = "CREATE TRIGGER no_letter BEFORE INSERT ON windlass_deferred FOR EACH ROW \
        IF NEW.item_key = '[13]' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no letters today'; END IF";
    let refuse = fixture.spell_for_app(postgres, sqlite, mariadb);
    let (of_table, plain) =
        ("DROP TRIGGER no_letter ON windlass_deferred", "DROP TRIGGER no_letter");
    (refuse, fixture.spell_for_app(of_table, plain, plain))
}

async fn engine_with_handler(fixture: &EngineFixture) -> Engine {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, _| match BAD.contains(&visit.id) {
        true => Err(ItemError::permanent("bad")),
        false => visit.done(),
    };
    let engine = fixture.builder(&job(HANDLER, CHUNKS)).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    engine.connection("app").unwrap().prepare().await.unwrap();
    engine
}

/// Asserts that only the chunk of item 13 failed, and that it names the item.
async fn failed_by_the_letter(engine: &Engine, job: &Job) {
    assert_eq!(job.status, JobStatus::Failed, "{:?}", job.error);
    let chunks = chunks(engine, job.id).await;
    let failed: Vec<_> =
        chunks.iter().filter(|chunk| chunk.status != ChunkStatus::Completed).collect();
    assert_eq!((chunks.len(), failed.len()), (3, 1));
    let error = failed[0].error.as_deref().unwrap();
    let named = error.contains("the dead letter of item") && error.contains("13");
    assert!(named && error.contains("no letters today"), "{error}");
    assert!(!error.contains("20"), "only the item whose letter is refused: {error}");
}

async fn logged(fixture: &EngineFixture) -> i64 {
    fixture.int("SELECT count(*) FROM log").await
}

pub(crate) async fn a_letter_that_the_ledger_refuses_fails_only_its_chunk_after_the_others(
    fixture: EngineFixture,
) {
    let engine = engine_with_handler(&fixture).await;
    let (refuse, mend) = ledger_refuses(&fixture);
    fixture.app.run(refuse).await;
    let failed = run(&engine).await;
    failed_by_the_letter(&engine, &failed).await;
    // The items after it are done, and the letter of the other failed item is there.
    assert_eq!(logged(&fixture).await, ROWS - 2);
    assert_eq!(keys(&letters(&engine, failed.id).await), [20]);

    // A retry without a repair fails again and works nothing twice.
    engine.retry(failed.id).await.unwrap();
    failed_by_the_letter(&engine, &work(&engine, failed.id).await).await;
    assert_eq!(logged(&fixture).await, ROWS - 2);

    fixture.app.run(mend).await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 2, 2));
    assert_eq!(keys(&letters(&engine, done.id).await), BAD);
    assert_eq!(logged(&fixture).await, ROWS - 2);
}

pub(crate) async fn an_item_whose_letter_was_refused_can_be_processed_later(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    let mended = std::sync::Arc::new(std::sync::atomic::AtomicBool::default());
    let is_mended = mended.clone();
    let handler = move |visit: Visit, _| {
        let fails = BAD.contains(&visit.id) && !is_mended.load(std::sync::atomic::Ordering::SeqCst);
        async move { if fails { Err(ItemError::transient("not yet")) } else { visit.done() } }
    };
    let engine = fixture.builder(&job(HANDLER, CHUNKS)).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    engine.connection("app").unwrap().prepare().await.unwrap();
    let (refuse, _) = ledger_refuses(&fixture);
    fixture.app.run(refuse).await;
    let failed = run(&engine).await;
    failed_by_the_letter(&engine, &failed).await;

    // The ledger still refuses letters, and now the item needs none.
    mended.store(true, std::sync::atomic::Ordering::SeqCst);
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 1, 1));
    fixture.logged_once(ROWS - 1).await;
}

pub(crate) async fn a_row_of_a_statement_whose_letter_is_refused_fails_only_its_chunk(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    let checked = "CREATE TABLE checked (id bigint NOT NULL PRIMARY KEY, \
        amount bigint NOT NULL CHECK (amount < 100), note text); \
        INSERT INTO checked SELECT id, 0, 'as it was' FROM visits; \
        UPDATE checked SET amount = 99 WHERE id IN (13, 20);";
    fixture.app.run(checked).await;
    let jobs = job("step.sql = \"UPDATE checked SET amount = amount + 1 WHERE {chunk}\"", CHUNKS);
    let engine = fixture.engine(&jobs.replace("\"visits\"", "\"checked\"")).await;
    engine.connection("app").unwrap().prepare().await.unwrap();
    let (refuse, mend) = ledger_refuses(&fixture);
    fixture.app.run(refuse).await;
    let failed = run(&engine).await;
    failed_by_the_letter(&engine, &failed).await;
    let raised = "SELECT count(*) FROM checked WHERE amount = 1";
    assert_eq!(fixture.int(raised).await, ROWS - 2);

    fixture.app.run(mend).await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 2, 2));
    assert_eq!(keys(&letters(&engine, done.id).await), BAD);
    assert_eq!(fixture.int(raised).await, ROWS - 2);
}

pub(crate) async fn a_letter_that_the_store_refuses_does_not_keep_the_others(
    fixture: EngineFixture,
) {
    let engine = engine_with_handler(&fixture).await;
    let refuse = fixture.spell(
        "CREATE FUNCTION no_copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF NEW.key = '[13]' THEN RAISE EXCEPTION 'no letters today'; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER no_copy BEFORE INSERT ON windlass_dead_letters FOR EACH ROW EXECUTE FUNCTION no_copy()",
        "CREATE TRIGGER no_copy BEFORE INSERT ON windlass_dead_letters \
         WHEN NEW.key = '[13]' BEGIN SELECT RAISE(ABORT, 'no letters today'); END",
    );
    fixture.store.run(refuse).await;
    let failed = run(&engine).await;
    failed_by_the_letter(&engine, &failed).await;
    assert_eq!(keys(&letters(&engine, failed.id).await), [20]);
    assert_eq!(logged(&fixture).await, ROWS - 2);

    let mend =
        fixture.spell("DROP TRIGGER no_copy ON windlass_dead_letters", "DROP TRIGGER no_copy");
    fixture.store.run(mend).await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    proven(&engine, &done).await;
    assert_eq!(keys(&letters(&engine, done.id).await), BAD);
    assert_eq!(logged(&fixture).await, ROWS - 2);
}

/// A redrive settles the letters of the items it has done, and not of the one that it could not write.
pub(crate) async fn a_redrive_leaves_the_letter_of_a_refused_item_open(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let phase = std::sync::Arc::new(std::sync::atomic::AtomicU32::default());
    let current = phase.clone();
    let handler = move |visit: Visit, _| {
        let fails = match current.load(std::sync::atomic::Ordering::SeqCst) {
            0 => visit.id > 10,
            1 => visit.id == 13,
            _ => false,
        };
        async move { if fails { Err(ItemError::permanent("bad")) } else { visit.done() } }
    };
    let engine = fixture.builder(&job(HANDLER, CHUNKS)).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let first = complete(&engine).await;
    assert_eq!(letters(&engine, first.id).await.len(), 20);
    let (refuse, _) = ledger_refuses(&fixture);
    fixture.app.run(refuse).await;
    phase.store(1, std::sync::atomic::Ordering::SeqCst);
    let selection = windlass_store::DeadLetterFilter { job: Some(first.id), ..Default::default() };
    let redrive = engine.redrive(&selection).await.unwrap();
    let redriven = work(&engine, redrive[0].job_id).await;
    assert_eq!(redriven.status, JobStatus::Failed, "{:?}", redriven.error);
    let open: BTreeSet<i64> = letters(&engine, first.id)
        .await
        .iter()
        .filter(|letter| letter.status == windlass_core::DeadLetterStatus::New)
        .filter_map(|letter| letter.key.as_i64())
        .collect();
    assert_eq!(open, BTreeSet::from([13]));
    phase.store(2, std::sync::atomic::Ordering::SeqCst);
    let redrive = engine.redrive(&selection).await.unwrap();
    proven(&engine, &work(&engine, redrive[0].job_id).await).await;
    fixture.logged_once(ROWS).await;
}

on_each!(
    a_letter_that_the_ledger_refuses_fails_only_its_chunk_after_the_others,
    an_item_whose_letter_was_refused_can_be_processed_later,
    a_row_of_a_statement_whose_letter_is_refused_fails_only_its_chunk,
    a_redrive_leaves_the_letter_of_a_refused_item_open,
    a_letter_that_the_store_refuses_does_not_keep_the_others,
);
