//! A failed item never fails its chunk. It is retried as the job type says, and becomes a dead letter with the data
//! that explains the failure.

use crate::protocol::common::*;
use std::sync::{Arc, Mutex};
use windlass_core::{ItemError, Outcome};
use windlass_engine::ItemContext;

const ROWS: i64 = 20;

pub(crate) async fn a_retryable_error_is_tried_again_until_it_succeeds(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let tries: Arc<Mutex<Vec<u32>>> = Arc::default();
    let seen = tries.clone();
    let handler = move |visit: Visit, context: ItemContext| {
        if visit.id == 3 {
            seen.lock().unwrap().push(context.attempt());
        }
        async move {
            match (visit.id, context.attempt()) {
                (3, 1 | 2) => Err(ItemError::transient("busy")),
                _ => visit.done(),
            }
        }
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS, 0));
    assert_eq!(*tries.lock().unwrap(), [1, 2, 3]);
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
}

pub(crate) async fn a_retryable_error_is_a_dead_letter_when_its_attempts_are_used_up(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, context: ItemContext| {
        if visit.id % 2 == 0 {
            return visit.done();
        }
        let context = serde_json::json!({"try": context.attempt()});
        Err(ItemError { context, ..ItemError::transient(format!("no answer for {}", visit.id)) })
    };
    let engine = fixture.builder(&job(HANDLER, "chunk.items = 10")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS / 2, ROWS / 2));
    let letters = letters(&engine, done.id).await;
    assert_eq!(letters.len() as i64, ROWS / 2);
    for letter in letters {
        assert_eq!(letter.attempts, 3);
        assert_eq!(letter.error, format!("no answer for {}", letter.key));
        assert_eq!(letter.context, serde_json::json!({"try": 3}));
        assert_eq!(letter.record["id"], letter.key);
        assert_eq!(letter.record["county"], "north", "the whole record");
    }
    let chunks = chunks(&engine, done.id).await;
    assert!(chunks.iter().all(|chunk| chunk.attempts == 0), "items fail, chunks do not");
}

pub(crate) async fn a_permanent_error_is_a_dead_letter_at_once(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, _| match visit.id {
        4 => Err(ItemError::permanent("never")),
        5 => Ok(Outcome::Skip),
        _ => visit.done(),
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    let items = done.items;
    assert_eq!((items.processed, items.skipped, items.dead), (ROWS - 2, 1, 1));
    let letters = letters(&engine, done.id).await;
    assert_eq!((letters[0].key.as_i64(), letters[0].attempts), (Some(4), 1));
    assert_eq!(letters[0].error, "never");
}

pub(crate) async fn a_handler_panic_fails_only_its_item(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, _| {
        assert!(visit.id != 6, "did not expect {}", visit.id);
        visit.done()
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 1, 1));
    let letters = letters(&engine, done.id).await;
    assert_eq!(letters[0].key, 6);
    assert!(letters[0].error.contains("panicked: did not expect 6"), "{}", letters[0].error);
}

/// A function may panic before it returns its future.
pub(crate) async fn a_handler_panic_before_the_future_fails_only_its_item(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let handler = |visit: Visit, _| {
        assert!(visit.id != 6, "did not expect {}", visit.id);
        async move { visit.done() }
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 1, 1));
    let letters = letters(&engine, done.id).await;
    assert!(letters[0].error.contains("panicked: did not expect 6"), "{}", letters[0].error);
    assert_eq!(chunks(&engine, done.id).await[0].losses, 0);
}

pub(crate) async fn a_record_that_cannot_be_deserialised_is_a_dead_letter(fixture: EngineFixture) {
    #[derive(serde::Deserialize)]
    struct Small {
        amount: u8,
    }
    fixture.visits(ROWS).await;
    fixture.app.run("UPDATE visits SET amount = 300 WHERE id = 9").await;
    let handler = async |small: Small, _| Ok(Outcome::set("amount", i64::from(small.amount) + 1));
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 1, 1));
    let letters = letters(&engine, done.id).await;
    assert_eq!((letters[0].key.as_i64(), letters[0].attempts), (Some(9), 1));
    assert!(letters[0].error.contains("cannot deserialize"), "{}", letters[0].error);
    assert_eq!(letters[0].record["amount"], 300);
}

/// A handler may not change the key or set an unknown column.
pub(crate) async fn a_change_of_the_key_or_of_an_unknown_column_is_a_dead_letter(
    fixture: EngineFixture,
) {
    fixture.visits(ROWS).await;
    let handler = async |visit: Visit, _| match visit.id {
        2 => Ok(Outcome::set("id", 5000)),
        3 => Ok(Outcome::set("amuont", 1)),
        _ => visit.done(),
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 2, 2));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), [2, 3]);
    assert!(letters[0].error.contains("`id`"), "{}", letters[0].error);
    assert!(letters[1].error.contains("amuont"), "{}", letters[1].error);
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE id = 5000").await, 0);
}

/// The database refuses it as an error of the statement, not of the value.
pub(crate) async fn a_change_of_a_generated_column_is_a_dead_letter(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let kind = fixture.spell_for_app("STORED", "VIRTUAL", "STORED");
    let sql = "ALTER TABLE visits ADD COLUMN twice bigint GENERATED ALWAYS AS (amount * 2)";
    fixture.app.run(&format!("{sql} {kind}")).await;
    fixture
        .app
        .run("CREATE TABLE twins (id bigint, twice bigint GENERATED ALWAYS AS (id * 2) STORED)")
        .await;
    let handler = move |visit: Visit, _| async move {
        match visit.id {
            4 => Ok(Outcome::set("twice", 8)),
            7 => {
                let row = [("id", 7.into()), ("twice", 14.into())];
                Ok(windlass_core::Change::default().insert("twins", row).into())
            }
            _ => visit.done(),
        }
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 2, 2));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), [4, 7]);
    assert!(letters[0].error.contains("twice"), "{}", letters[0].error);
}

on_each!(
    a_change_of_a_generated_column_is_a_dead_letter,
    a_retryable_error_is_tried_again_until_it_succeeds,
    a_retryable_error_is_a_dead_letter_when_its_attempts_are_used_up,
    a_permanent_error_is_a_dead_letter_at_once,
    a_handler_panic_fails_only_its_item,
    a_handler_panic_before_the_future_fails_only_its_item,
    a_record_that_cannot_be_deserialised_is_a_dead_letter,
    a_change_of_the_key_or_of_an_unknown_column_is_a_dead_letter,
);
