//! A job reaches exactly the rows that its filters, the submitter's claims and the requested ids
//! allow.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{Identity, ItemError, Job, Request};
use windlass_engine::Engine;

/// Four years with 25 visits each, in two counties.
const ROWS: i64 = 100;
const FILTERS: &str = "source.filters = { years = \"year\", counties = \"county\" }";

pub(crate) async fn the_values_of_a_filter_are_planned_as_separate_segments(
    fixture: EngineFixture,
) {
    let engine = spread(&fixture, FILTERS).await;
    let request = json!({"jobType": "JOB", "filter": {"years": [2021, "2023", 2021]}});
    let done = run_request(&engine, asked(request)).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.total, done.items.processed), (50, 50));
    assert_eq!(changed(&fixture, "year IN (2021, 2023)").await, (50, 50));
    // The plan, and a segment for each distinct value.
    assert_eq!(engine.store().segments(done.id).await.unwrap().len(), 3);
}

pub(crate) async fn several_filters_are_combined_with_and(fixture: EngineFixture) {
    let engine = spread(&fixture, FILTERS).await;
    let filter = json!({"years": [2020, 2021], "counties": ["south"]});
    let done = run_request(&engine, asked(json!({"jobType": "JOB", "filter": filter}))).await;
    proven(&engine, &done).await;
    let within = "year IN (2020, 2021) AND county = 'south'";
    let all = fixture.int(&format!("SELECT count(*) FROM visits WHERE {within}")).await;
    assert_eq!(done.items.processed, all);
    assert_eq!(changed(&fixture, within).await, (all, all));
}

pub(crate) async fn an_empty_filter_selects_everything_and_an_unknown_value_nothing(
    fixture: EngineFixture,
) {
    let engine = spread(&fixture, FILTERS).await;
    let all = json!({"jobType": "JOB", "filter": {"years": [], "counties": null}});
    let done = run_request(&engine, asked(all)).await;
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
    let none = json!({"jobType": "JOB", "filter": {"years": [1999]}});
    let done = run_request(&engine, asked(none)).await;
    proven(&engine, &done).await;
    assert_eq!(done.items.total, 0);
    fixture.each_once(ROWS).await;
}

pub(crate) async fn claims_exclude_rows_of_other_submitters_everywhere(fixture: EngineFixture) {
    spread_out(&fixture).await;
    let jobs = job(HANDLER, "chunk.items = 7\nsource.claims = { county = \"county\" }");
    let handler = async |visit: Visit, _| match visit.id % 10 {
        3 | 4 => Err(ItemError::permanent("no")),
        _ => visit.done(),
    };
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let refused = engine.submit(request(), Engine::local_identity()).await.unwrap_err();
    assert!(refused.to_string().contains("claim"), "{refused}");

    let ann = ann();
    let dry = engine.dry_run(request(), ann.clone()).await.unwrap();
    assert_eq!(dry.records, ROWS / 2);
    assert!(dry.sample.iter().all(|sample| sample.before["county"] == "south"));

    let job = engine.submit(request(), ann.clone()).await.unwrap().id();
    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    assert_eq!(done.items.total, ROWS / 2);
    let (south, all) = changed(&fixture, "county = 'south'").await;
    assert_eq!((south, all), (40, 40), "a tenth of all, of which half are hers, fail");
    let letters = letters(&engine, job).await;
    assert_eq!(letters.len(), 10);
    assert!(letters.iter().all(|letter| letter.record["county"] == "south"));

    // A requested id outside the claims is treated like one that does not exist.
    let foreign = json!({"jobType": "JOB", "ids": [1, 2, 1001]});
    let job = engine.submit(asked(foreign), ann).await.unwrap().id();
    let done = work(&engine, job).await;
    assert_eq!((done.items.total, done.items.processed, done.items.skipped), (3, 1, 2));
    assert_eq!(fixture.int("SELECT amount FROM visits WHERE id = 1").await, 0);
}

pub(crate) async fn duplicate_ids_are_worked_once_and_unknown_ones_skipped(fixture: EngineFixture) {
    for step in [ADD, HANDLER] {
        let fixture = fixture.another().await;
        fixture.visits(10).await;
        let jobs = job(step, "chunk.items = 2\nchunk.commit = 1");
        let handler = async |visit: Visit, _| visit.done();
        let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
        let ids = json!({"jobType": "JOB", "ids": [3, "3", 9, 700, 3, 1, 800, 900]});
        let done = run_request(&engine, asked(ids)).await;
        proven(&engine, &done).await;
        let items = done.items;
        assert_eq!((items.total, items.processed, items.skipped), (6, 3, 3), "{step}");
        assert_eq!(changed(&fixture, "id IN (1, 3, 9)").await, (3, 3));
    }
}

pub(crate) async fn a_segment_stops_at_its_item_limit(fixture: EngineFixture) {
    let engine = spread(&fixture, FILTERS).await;
    let few = json!({"jobType": "JOB", "parallelSegments": 2, "maxItemsPerSegment": 8});
    let done = run_request(&engine, asked(few)).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.total, done.items.processed), (16, 16));
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 16);
    let filter = json!({"years": [2020, 2021]});
    let few = json!({"jobType": "JOB", "filter": filter, "maxItemsPerSegment": 8});
    let done = run_request(&engine, asked(few)).await;
    proven(&engine, &done).await;
    assert_eq!(done.items.processed, 16);
}

pub(crate) async fn all_rows_of_a_key_with_several_columns_are_read(fixture: EngineFixture) {
    // MariaDB's default collation would treat `b` and `B` as equal.
    let letters = fixture.spell_for_app("", "", " COLLATE utf8mb4_bin");
    fixture.app.run(&COMPOSITE.replace("varchar(10)", &format!("varchar(10){letters}"))).await;
    for (step, expected) in [("sql", 1), ("handler", 2)] {
        let step = match step {
            "sql" => "step.sql = \"UPDATE pairs SET amount = amount + 1 WHERE {chunk}\"",
            _ => HANDLER,
        };
        let jobs = job(step, "chunk.items = 7\nchunk.commit = 3").replace("visits", "pairs");
        let handler =
            async |pair: Pair, _| Ok(windlass_core::Outcome::set("amount", pair.amount + 1));
        let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
        let request = Request { parallel_segments: Some(3), ..request() };
        let done = run_request(&engine, request).await;
        proven(&engine, &done).await;
        assert_eq!(done.items.processed, 60);
        let sql = format!("SELECT count(*) FROM pairs WHERE amount = {expected}");
        assert_eq!(fixture.int(&sql).await, 60);
        let ids = json!({"jobType": "JOB", "ids": [["b", 3], ["b", 3], ["z", 1]]});
        let done = run_request(&engine, asked(ids)).await;
        proven(&engine, &done).await;
        assert_eq!((done.items.processed, done.items.skipped), (1, 1));
        fixture.app.run(&format!("UPDATE pairs SET amount = {expected}")).await;
    }
}

pub(crate) async fn the_rows_of_a_query_are_read_and_results_inserted(fixture: EngineFixture) {
    spread_out(&fixture).await;
    let query = "source.query = \"SELECT id, amount, note FROM visits WHERE county = 'south'\"\n\
                 source.key = [\"id\"]";
    let jobs = job("step.handler = \"work\"", "chunk.items = 7");
    let jobs = jobs.replace("source.table = \"visits\"", query);
    let handler = async |visit: Visit, _| {
        Ok(windlass_core::Change::default().insert("log", [("visit", visit.id.into())]).into())
    };
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!(done.items.processed, ROWS / 2);
    fixture.logged_once(ROWS / 2).await;
}

pub(crate) async fn a_fixed_condition_holds_for_every_statement(fixture: EngineFixture) {
    spread_out(&fixture).await;
    let engine = fixture.engine(&job(ADD, "chunk.items = 7\nsource.where = \"year > 2021\"")).await;
    let done = complete(&engine).await;
    assert_eq!(done.items.processed, 50);
    assert_eq!(changed(&fixture, "year > 2021").await, (50, 50));
}

pub(crate) async fn a_dry_run_changes_nothing(fixture: EngineFixture) {
    for step in [ADD, HANDLER] {
        let fixture = fixture.another().await;
        spread_out(&fixture).await;
        let handler = async |visit: Visit, context: windlass_engine::ItemContext| {
            assert!(context.dry_run());
            visit.done()
        };
        let jobs = job(step, FILTERS);
        let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
        let request = asked(json!({"jobType": "JOB", "filter": {"years": [2022]}}));
        let dry = engine.dry_run(request, Engine::local_identity()).await.unwrap();
        assert_eq!(dry.records, 25);
        assert!(!dry.sample.is_empty());
        for sample in dry.sample {
            assert_eq!(
                (&sample.before["year"], &sample.before["amount"]),
                (&json!(2022), &json!(0))
            );
            assert_eq!(sample.after["amount"], 1);
            assert_eq!(sample.outcome, "update");
        }
        assert_eq!(fixture.int("SELECT sum(amount) + sum(version) FROM visits").await, 0);
        fixture.logged_once(0).await;
        assert!(engine.store().jobs(&Default::default()).await.unwrap().is_empty());
    }
}

/// A job ends when the identity of its submitter expires, but only if the job type says so.
pub(crate) async fn an_expired_identity_ends_a_job_only_if_claims_expire_is_set(
    fixture: EngineFixture,
) {
    fixture.visits(20).await;
    let soon = chrono::Utc::now() + chrono::TimeDelta::milliseconds(300);
    let expiring = Identity { name: "ann".into(), expires: Some(soon), ..Identity::default() };
    for (says, processed) in [("true", 10), ("false", 20)] {
        let more = format!("source.claims_expire = {says}\nchunk.items = 10\nchunk.commit = 1");
        // The tenth item takes until the identity has expired.
        let late = move |visit: Visit, _| async move {
            while visit.id % 10 == 0 && chrono::Utc::now() <= soon {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            visit.done()
        };
        let engine = fixture.builder(&job(HANDLER, &more)).handler("work", late);
        let engine = engine.connect().await.unwrap();
        let id = engine.submit(request(), expiring.clone()).await.unwrap().id();
        let options = windlass_engine::Options::default().with_slots(1).with_only(id);
        let (worker, handle) = windlass_engine::Worker::new(engine.clone(), options);
        let working = tokio::spawn(worker.run());
        let done = ended(&engine, id).await;
        handle.shutdown();
        working.await.unwrap();
        assert!(done.items.processed <= processed, "{done:?}");
        if says == "true" {
            assert!(done.error.unwrap().contains("expired"));
        } else {
            assert_eq!((done.error, done.items.processed), (None, 20));
        }
    }
}

on_each!(
    an_expired_identity_ends_a_job_only_if_claims_expire_is_set,
    the_values_of_a_filter_are_planned_as_separate_segments,
    several_filters_are_combined_with_and,
    an_empty_filter_selects_everything_and_an_unknown_value_nothing,
    claims_exclude_rows_of_other_submitters_everywhere,
    duplicate_ids_are_worked_once_and_unknown_ones_skipped,
    a_segment_stops_at_its_item_limit,
    all_rows_of_a_key_with_several_columns_are_read,
    the_rows_of_a_query_are_read_and_results_inserted,
    a_fixed_condition_holds_for_every_statement,
    a_dry_run_changes_nothing,
);

#[derive(serde::Deserialize)]
struct Pair {
    amount: i64,
}

/// Pairs in an order that neither column has.
const COMPOSITE: &str = "
    CREATE TABLE pairs (a varchar(10) NOT NULL, b bigint NOT NULL, amount bigint NOT NULL DEFAULT 0,
        version bigint NOT NULL DEFAULT 0, PRIMARY KEY (a, b));
    INSERT INTO pairs (a, b)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
    SELECT 'a', i FROM n UNION ALL SELECT 'b', i FROM n UNION ALL SELECT 'B', i FROM n";

async fn spread_out(fixture: &EngineFixture) {
    fixture.visits(ROWS).await;
    let sql = "UPDATE visits SET year = 2020 + id % 4,
               county = CASE WHEN id % 2 = 0 THEN 'south' ELSE 'north' END";
    fixture.app.run(sql).await;
}

/// An engine that adds one to the visits of several years and counties.
async fn spread(fixture: &EngineFixture, more: &str) -> Engine {
    spread_out(fixture).await;
    fixture.engine(&job(ADD, &format!("chunk.items = 7\n{more}"))).await
}

async fn run_request(engine: &Engine, request: Request) -> Job {
    let job = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    work(engine, job).await
}

fn ann() -> Identity {
    let claims = [("county".to_owned(), vec!["south".into()])].into();
    Identity { name: "ann".to_owned(), claims, ..Identity::default() }
}

/// The number of changed rows within a condition, and in total.
async fn changed(fixture: &EngineFixture, within: &str) -> (i64, i64) {
    let inside = format!("SELECT count(*) FROM visits WHERE amount = 1 AND ({within})");
    (fixture.int(&inside).await, fixture.int("SELECT coalesce(sum(amount), 0) FROM visits").await)
}
