//! A row that the database refuses does not fail the other rows. The batch is halved until that row is alone, and the
//! row becomes a dead letter.

use crate::protocol::common::*;
use windlass_core::Change;
use windlass_testkit::MariaServer;

/// Seven of a thousand rows, including the first, the last and neighbours.
const BAD: [i64; 7] = [1, 250, 251, 252, 499, 777, 1000];

pub(crate) async fn a_check_violation_fails_only_the_violating_rows(fixture: EngineFixture) {
    fixture.visits(1000).await;
    let mut sql = "CREATE TABLE checked (id bigint NOT NULL PRIMARY KEY,
        amount bigint NOT NULL CHECK (amount < 100), note text);
        INSERT INTO checked SELECT id, 0, 'as it was' FROM visits;"
        .to_owned();
    for id in BAD {
        sql += &format!("UPDATE checked SET amount = 99 WHERE id = {id};");
    }
    fixture.app.run(&sql).await;
    let jobs = job("step.sql = \"UPDATE checked SET amount = amount + 1 WHERE {chunk}\"", "");
    let jobs = jobs.replace("\"visits\"", "\"checked\"");
    let engine = fixture.engine(&format!("{jobs}chunk.items = 250")).await;

    let done = complete(&engine).await;

    assert_eq!((done.items.processed, done.items.dead), (993, 7));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), BAD);
    let message = fixture.spell_for_app(
        "violates check constraint",
        "CHECK constraint failed",
        match MariaServer::uses_mysql() {
            false => "CONSTRAINT `checked.amount` failed",
            true => "Check constraint 'checked_chk_1' is violated",
        },
    );
    for letter in &letters {
        assert!(letter.error.contains(message), "{}", letter.error);
        let record = serde_json::json!({"id": letter.key, "amount": 99, "note": "as it was"});
        assert_eq!(letter.record, record);
    }
    assert_eq!(fixture.int("SELECT count(*) FROM checked WHERE amount = 1").await, 993);
    assert_eq!(fixture.int("SELECT count(*) FROM checked WHERE amount = 99").await, 7);
}

pub(crate) async fn an_exception_in_a_trigger_fails_only_its_row(fixture: EngineFixture) {
    fixture.visits(100).await;
    fixture.app.run(fixture.spell_for_app(TRIGGER_POSTGRES, TRIGGER_SQLITE, TRIGGER_MARIADB)).await;
    let engine = fixture.engine(&job(ADD, "chunk.items = 50")).await;

    let done = complete(&engine).await;

    assert_eq!((done.items.processed, done.items.dead), (98, 2));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), [13, 66]);
    for letter in letters {
        assert!(letter.error.contains("bad luck"), "{}", letter.error);
    }
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 98);
}

pub(crate) async fn a_unique_violation_of_an_insert_fails_only_its_item(fixture: EngineFixture) {
    fixture.visits(100).await;
    fixture.app.run("CREATE UNIQUE INDEX one_line ON log (visit)").await;
    fixture.app.run("INSERT INTO log VALUES (42, 'was here before')").await;
    let handler = async |visit: Visit, _| visit.done();
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();

    let done = complete(&engine).await;

    assert_eq!((done.items.processed, done.items.dead), (99, 1));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), [42]);
    assert_eq!(letters[0].record["amount"], 0);
    let message =
        fixture.spell_for_app("duplicate key", "UNIQUE constraint failed", "Duplicate entry");
    let error = &letters[0].error;
    assert!(error.contains(message) || error.contains("with this key already"), "{error}");
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 99);
    fixture.logged_once(100).await;
}

/// The first of two items that insert the same row keeps it.
pub(crate) async fn of_two_items_that_insert_the_same_row_one_becomes_a_dead_letter(
    fixture: EngineFixture,
) {
    fixture.visits(10).await;
    fixture.app.run("CREATE UNIQUE INDEX one_line ON log (visit)").await;
    let handler = async |visit: Visit, _| {
        let half = (visit.id + 1) / 2;
        Ok(Change::default().set("amount", 1).insert("log", [("visit", half.into())]).into())
    };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();

    let done = complete(&engine).await;

    assert_eq!((done.items.processed, done.items.dead), (5, 5));
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 5);
    fixture.logged_once(5).await;
}

/// Deferred items are halved too: the refusal comes at the second try.
pub(crate) async fn batches_of_deferred_items_are_halved_too(fixture: EngineFixture) {
    fixture.visits(20).await;
    fixture.app.run("CREATE UNIQUE INDEX one_line ON log (visit)").await;
    fixture.app.run("INSERT INTO log VALUES (7, 'was here before')").await;
    let handler =
        async |visit: Visit, context: windlass_engine::ItemContext| match context.attempt() {
            1 => Err(windlass_core::ItemError::transient("not yet")),
            _ => visit.done(),
        };
    let engine = fixture.builder(&job(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();

    let done = complete(&engine).await;

    assert_eq!((done.items.processed, done.items.dead), (19, 1));
    assert_eq!(keys(&letters(&engine, done.id).await), [7]);
    fixture.logged_once(20).await;
}

on_each!(
    a_check_violation_fails_only_the_violating_rows,
    an_exception_in_a_trigger_fails_only_its_row,
    a_unique_violation_of_an_insert_fails_only_its_item,
    of_two_items_that_insert_the_same_row_one_becomes_a_dead_letter,
    batches_of_deferred_items_are_halved_too,
);

const TRIGGER_POSTGRES: &str = "
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.id IN (13, 66) THEN RAISE EXCEPTION 'bad luck with %', NEW.id; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON visits FOR EACH ROW EXECUTE FUNCTION refuse()";
const TRIGGER_SQLITE: &str = "
    CREATE TRIGGER refuse BEFORE UPDATE ON visits WHEN NEW.id IN (13, 66)
    BEGIN SELECT RAISE(ABORT, 'bad luck'); END";
const TRIGGER_MARIADB: &str = "
    CREATE TRIGGER refuse BEFORE UPDATE ON visits FOR EACH ROW
    IF NEW.id IN (13, 66) THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'bad luck'; END IF";
