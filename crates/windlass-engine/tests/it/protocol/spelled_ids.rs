//! Ids and filter values that are spelled differently from the stored ones but equal them for the database. Each record is worked once and
//! counted once, and none is left out when its batch is halved.

use crate::protocol::common::*;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use windlass_core::{DeadLetterStatus, ItemError, Job, JobStatus, Outcome};
use windlass_engine::{Engine, ItemContext};
use windlass_store::DeadLetterFilter;

/// A key type, stored keys, and ids: all of the keys, some more than once, and one that does not
/// exist.
struct Spelling {
    kind: &'static str,
    stored: &'static [&'static str],
    ids: Json,
}

fn spelling(kind: &'static str, stored: &'static [&'static str], ids: Json) -> Spelling {
    Spelling { kind, stored, ids }
}

fn spellings(fixture: &EngineFixture) -> Vec<Spelling> {
    let mut all = vec![spelling("bigint", &["7", "8"], json!(["007", 7, "+7", 8, 9]))];
    all.extend(match fixture.spell_for_app("postgres", "sqlite", "mariadb") {
        "postgres" => vec![
            spelling("numeric(12,2)", &["1", "2.5"], json!([1, "1.0", "1.00", "2.500", 7])),
            spelling("numeric", &["1.0", "2"], json!(["1.00", "1", 2.0, "1.01"])),
            spelling("citext", &["'abc'", "'Def'"], json!(["ABC", "abc", "DEF", "x"])),
            spelling("text COLLATE folded", &["'abc'", "'Def'"], json!(["ABC", "Abc", "DEF", "x"])),
            spelling("char(5)", &["'ab'", "'cd'"], json!(["ab", "ab ", "cd   ", "AB"])),
            spelling("uuid", &[UUIDS[0], UUIDS[1]], json!([UPPER, LOWER, OTHER, UNKNOWN])),
            spelling(
                "timestamptz",
                &["'2025-01-31 03:00:00+00'", "'2025-02-01 00:00:00+00'"],
                times(),
            ),
        ],
        "sqlite" => vec![
            spelling("numeric", &["1", "2.5"], json!(["1.0", 1, "2.50", 7])),
            spelling("text COLLATE NOCASE", &["'abc'", "'Def'"], json!(["ABC", "abc", "DEF", "x"])),
        ],
        _ => vec![
            spelling("decimal(12,2)", &["1", "2.5"], json!([1, "1.0", "1.00", "2.500", 7])),
            spelling("varchar(20)", &["'abc'", "'Def'"], json!(["ABC", "abc", "DEF", "x"])),
            // The default collation of MySQL does not ignore trailing spaces.
            spelling(
                "char(5) COLLATE utf8mb4_general_ci",
                &["'ab'", "'cd'"],
                json!(["ab", "ab ", "cd   ", "x"]),
            ),
            spelling("uuid", &[UUIDS[0], UUIDS[1]], json!([UPPER, LOWER, OTHER, UNKNOWN])),
            spelling("timestamp(0)", &["'2025-01-31 03:00:00'", "'2025-02-01 00:00:00'"], times()),
        ],
    });
    all
}

const UUIDS: [&str; 2] =
    ["'018f3c2a-0000-7000-8000-00000000000a'", "'018f3c2a-0000-7000-8000-00000000000b'"];
const UPPER: &str = "018F3C2A-0000-7000-8000-00000000000A";
const LOWER: &str = "018f3c2a-0000-7000-8000-00000000000a";
const OTHER: &str = "018F3C2A-0000-7000-8000-00000000000b";
const UNKNOWN: &str = "018f3c2a-0000-7000-8000-00000000000c";

fn times() -> Json {
    json!([
        "2025-01-31T03:00:00Z",
        "2025-01-31 12:00:00+09:00",
        "2025-02-01 00:00:00+00:00",
        "2030-01-01T00:00:00Z"
    ])
}

/// Creates the types of PostgreSQL for which different texts are equal.
async fn folded(fixture: &EngineFixture) {
    if let "postgres" = fixture.spell_for_app("postgres", "", "") {
        let folded = "CREATE EXTENSION IF NOT EXISTS citext;
                      CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
        fixture.app.run(folded).await;
    }
}

/// Creates `words` with these keys. A check refuses the write-back of the first one.
async fn words(fixture: &EngineFixture, kind: &str, stored: &[&str]) {
    folded(fixture).await;
    let sql = format!(
        "CREATE TABLE words (id {kind} NOT NULL PRIMARY KEY, amount bigint NOT NULL DEFAULT 0
         CHECK (amount < 5), version bigint NOT NULL DEFAULT 0)"
    );
    fixture.app.run(&sql).await;
    for key in stored {
        fixture.app.run(&format!("INSERT INTO words (id) VALUES ({key})")).await;
    }
    fixture.app.run(&format!("UPDATE words SET amount = 4 WHERE id = {}", stored[0])).await;
}

fn jobs(step: &str, more: &str) -> String {
    job(step, more).replace("visits", "words")
}

async fn add_one(record: Json, _: ItemContext) -> Result<Outcome, ItemError> {
    Ok(Outcome::set("amount", record["amount"].as_i64().unwrap_or_default() + 1))
}

async fn ask(engine: &Engine, ids: &Json) -> Job {
    let request = asked(json!({"jobType": "JOB", "ids": ids}));
    let job = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    work(engine, job).await
}

async fn redriven(engine: &Engine, job: &Job) -> Job {
    let filter = DeadLetterFilter { job: Some(job.id), limit: 100, ..DeadLetterFilter::default() };
    let started = engine.redrive(&filter).await.unwrap();
    assert_eq!(started.len(), 1, "{started:?}");
    work(engine, started[0].job_id).await
}

pub(crate) async fn a_key_is_worked_once_in_every_spelling_of_its_id(fixture: EngineFixture) {
    for Spelling { kind, stored, ids } in spellings(&fixture) {
        let fixture = fixture.another().await;
        words(&fixture, kind, stored).await;
        let rows = stored.len() as i64;
        let engine = fixture.builder(&jobs(HANDLER, "")).handler("work", add_one);
        let engine = engine.connect().await.unwrap();
        let done = ask(&engine, &ids).await;
        proven(&engine, &done).await;
        let items = &done.items;
        let counts = (items.total, items.processed, items.dead, items.skipped);
        assert_eq!(counts, (rows + 1, rows - 1, 1, 1), "{kind}: {ids}");
        let sum = "SELECT sum(amount) FROM words";
        assert_eq!(fixture.int(sum).await, 4 + rows - 1, "{kind}: the others are done");

        fixture.app.run("UPDATE words SET amount = 0 WHERE amount = 4").await;
        let again = redriven(&engine, &done).await;
        proven(&engine, &again).await;
        assert_eq!((again.items.total, again.items.processed), (1, 1), "{kind}");
        assert_eq!(fixture.int(sum).await, rows, "{kind}: all are done");
        let letters = letters(&engine, done.id).await;
        assert_eq!(letters.len(), 1, "{kind}: {letters:?}");
        assert_eq!(letters[0].status, DeadLetterStatus::Reprocessed, "{kind}");
    }
}

pub(crate) async fn a_statement_counts_a_key_once_in_every_spelling_of_its_id(
    fixture: EngineFixture,
) {
    for Spelling { kind, stored, ids } in spellings(&fixture) {
        let fixture = fixture.another().await;
        words(&fixture, kind, stored).await;
        fixture.app.run("UPDATE words SET amount = 0").await;
        let step = "step.sql = \"UPDATE words SET amount = amount + 1 WHERE {chunk}\"";
        let engine = fixture.engine(&jobs(step, "chunk.items = 2\nchunk.commit = 1")).await;
        let done = ask(&engine, &ids).await;
        proven(&engine, &done).await;
        let rows = stored.len() as i64;
        let items = &done.items;
        assert_eq!((items.total, items.processed, items.skipped), (rows + 1, rows, 1), "{kind}");
        assert_eq!(fixture.int("SELECT sum(amount) FROM words").await, rows, "{kind}");
    }
}

/// Filter values that are equal in the column's collation plan each record once, from a table and from a query, whose
/// collation the client does not see.
pub(crate) async fn a_record_is_planned_once_for_all_spellings_of_its_filter_value(
    fixture: EngineFixture,
) {
    let kinds = match fixture.spell_for_app("postgres", "sqlite", "mariadb") {
        "postgres" => vec!["citext", "text COLLATE folded"],
        "sqlite" => vec!["text COLLATE NOCASE"],
        _ => vec!["varchar(20)", "varchar(20) CHARACTER SET latin1"],
    };
    let table = "source.table = \"places\"";
    let query = "source.query = \"SELECT id, county FROM places\"\nsource.key = [\"id\"]";
    for (kind, source) in kinds.iter().flat_map(|kind| [(kind, table), (kind, query)]) {
        let fixture = fixture.another().await;
        folded(&fixture).await;
        let sql = format!(
            "CREATE TABLE places (id bigint NOT NULL PRIMARY KEY, county {kind} NOT NULL,
             amount bigint NOT NULL DEFAULT 0);
             CREATE INDEX places_county ON places (county, id);
             INSERT INTO places (id, county) VALUES (1, 'Kent'), (2, 'kent'), (3, 'KENT'),
             (4, 'Surrey'), (5, 'Essex')"
        );
        fixture.app.run(&sql).await;
        let step = "step.sql = \"UPDATE places SET amount = amount + 1 WHERE {chunk}\"\n\
                    source.filters = { counties = \"county\" }\nchunk.items = 2";
        let jobs = job(step, "").replace("source.table = \"visits\"", source);
        let engine = fixture.engine(&jobs).await;
        let counties = ["kent", "Kent", "KeNT", "surrey", "SURREY", "Wales", "WALES"];
        let request = asked(json!({"jobType": "JOB", "filter": {"counties": counties}}));
        let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
        let done = work(&engine, id).await;
        assert_eq!(done.status, JobStatus::Completed, "{kind} {source}: {:?}", done.error);
        assert_eq!((done.items.total, done.items.processed), (4, 4), "{kind} {source}");
        let sum = fixture.int("SELECT sum(amount) FROM places").await;
        let once = fixture.int("SELECT count(*) FROM places WHERE amount = 1").await;
        assert_eq!((sum, once), (4, 4), "{kind} {source}");
    }
}

on_each!(
    a_key_is_worked_once_in_every_spelling_of_its_id,
    a_statement_counts_a_key_once_in_every_spelling_of_its_id,
    a_record_is_planned_once_for_all_spellings_of_its_filter_value,
);

/// The spelling of a record's key changes after planning, again before its next try, and again before it is
/// redriven.
#[tokio::test]
async fn a_key_whose_spelling_changes_meanwhile_is_the_same_item() {
    let fixture = EngineFixture::postgres().await;
    words(&fixture, "citext", &["'abc'", "'def'"]).await;
    fixture.app.run("UPDATE words SET amount = 0").await;
    let place = Arc::new(fixture.app.clone());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (inner, keys) = (place.clone(), seen.clone());
    let handler = move |record: Json, context: ItemContext| {
        let (place, keys) = (inner.clone(), keys.clone());
        async move {
            keys.lock().unwrap().push(context.idempotency_key());
            if record["id"] == "def" {
                return Ok(Outcome::set("amount", 1));
            }
            if context.attempt() == 1 && record["amount"] == 0 {
                place.run("UPDATE words SET id = 'aBC' WHERE id = 'abc'").await;
                return Err(ItemError::transient("busy"));
            }
            match record["amount"].as_i64() {
                Some(0) => Err(ItemError::permanent("not yet")),
                _ => Ok(Outcome::set("amount", 3)),
            }
        }
    };
    let engine = fixture.builder(&jobs(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let request = asked(json!({"jobType": "JOB", "ids": ["abc", "def", "ghi"]}));
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    plan_job(&engine, id).await;
    place.run("UPDATE words SET id = 'ABC' WHERE id = 'abc'").await;
    let done = work(&engine, id).await;
    proven(&engine, &done).await;
    let items = &done.items;
    assert_eq!((items.processed, items.dead, items.skipped), (1, 1, 1), "{items:?}");

    place.run("UPDATE words SET id = 'abC', amount = 2 WHERE id = 'abc'").await;
    let again = redriven(&engine, &done).await;
    proven(&engine, &again).await;
    assert_eq!(again.items.processed, 1);
    assert_eq!(fixture.int("SELECT amount FROM words WHERE id = 'abc'").await, 3);
    let letters = letters(&engine, done.id).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].status, DeadLetterStatus::Reprocessed);
    let seen = seen.lock().unwrap().clone();
    let of_abc: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!(of_abc.len(), 2, "one idempotency key for each record: {seen:?}");
    assert_eq!(engine.job(done.id).await.unwrap().status, JobStatus::Completed);
}
