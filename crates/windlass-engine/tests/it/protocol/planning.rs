//! Planning of small jobs by their submit, and of requests with many filter values: in few queries, and without delaying
//! other jobs.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{ChunkStatus, JobId, JobStatus, Request};
use windlass_engine::Engine;
use windlass_testkit::eventually;

/// The most values that a filter may have.
const VALUES: i64 = 10_000;
/// Transactions for planning: two for each 500 values, ten segments, and some for the schema.
const MOST_TRANSACTIONS: i64 = 120;

const STEP: &str = "step.sql = \"UPDATE visits SET amount = amount + 1 WHERE {chunk}\"\n\
                    source.filters = { visits = \"id\", years = \"year\", counties = \"county\" }";

fn of_all_visits() -> Request {
    let visits: Vec<i64> = (1..=VALUES).collect();
    asked(json!({"jobType": "JOB", "filter": {"visits": visits}}))
}

/// Every second value has a record.
pub(crate) async fn many_values_are_planned_in_few_queries(fixture: EngineFixture) {
    fixture.visits(VALUES).await;
    fixture.app.run("DELETE FROM visits WHERE id % 2 = 0").await;
    let engine = fixture.engine(&job(STEP, "")).await;
    let id = engine.submit(of_all_visits(), Engine::local_identity()).await.unwrap().id();
    plan_job(&engine, id).await;
    let planned = engine.job(id).await.unwrap();
    assert_eq!((planned.chunks.total, planned.items.total), (VALUES / 2, VALUES / 2));
    drop(engine);
    if let TestDatabase::Postgres(app) = &fixture.app {
        // PostgreSQL counts the transactions of a connection when it closes. The store is asked, since each question would
        // count as a transaction too.
        let of_app = format!("WHERE datname = '{}'", app.name());
        let open = format!(
            "SELECT count(*) FROM pg_stat_activity {of_app} AND application_name = 'windlass'"
        );
        eventually("connections end", PATIENCE, async || fixture.store.int(&open).await == 0).await;
        let counted = format!("SELECT xact_commit + xact_rollback FROM pg_stat_database {of_app}");
        let transactions = fixture.store.int(&counted).await;
        assert!(transactions < MOST_TRANSACTIONS, "{transactions} transactions");
    }
}

/// Values with fewer records than a chunk, with more, and with none, and a limit of items.
pub(crate) async fn values_of_all_sizes_are_planned_and_worked(fixture: EngineFixture) {
    fixture.visits(300).await;
    fixture.app.run("UPDATE visits SET year = id % 7 * 10 WHERE id > 100").await;
    fixture.app.run("UPDATE visits SET year = 0, county = 'south' WHERE id <= 100").await;
    let engine = fixture.engine(&job(STEP, "chunk.items = 20")).await;
    let years: Vec<i64> = (0..100).collect();
    let request = asked(json!({
        "jobType": "JOB", "filter": {"years": years}, "parallelSegments": 3,
    }));
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    proven(&engine, &work(&engine, id).await).await;
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE amount = 1").await, 300);
    // Lists of keys, because no index has the key after the county.
    let counties = json!({
        "jobType": "JOB", "filter": {"counties": ["nowhere", "south", "north"]},
        "parallelSegments": 1, "maxItemsPerSegment": 130,
    });
    let id = engine.submit(asked(counties), Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    assert_eq!((done.status, done.items.total), (JobStatus::Completed, 130));
    let south = "SELECT count(*) FROM visits WHERE amount = 2 AND county = 'south'";
    assert_eq!(fixture.int(south).await, 100);
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 430);
}

/// The number of chunks right after the submit.
async fn chunks_at_submit(engine: &Engine, request: Request) -> (JobId, i64) {
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    (id, engine.job(id).await.unwrap().chunks.total)
}

pub(crate) async fn a_small_table_is_planned_by_its_submit(fixture: EngineFixture) {
    fixture.visits(30).await;
    let engine = fixture.engine(&job(STEP, "")).await;
    let (all, chunks) = chunks_at_submit(&engine, Request::new("JOB")).await;
    assert_eq!(chunks, 1);
    let ids = asked(json!({"jobType": "JOB", "ids": [3, 4]}));
    let (two, chunks) = chunks_at_submit(&engine, ids).await;
    assert_eq!(chunks, 1);
    let after = Request { after: Some(vec![all]), ..Request::new("JOB") };
    let (waiting, chunks) = chunks_at_submit(&engine, after).await;
    assert_eq!(chunks, 0, "a job that waits for others is planned later");
    let years = asked(json!({"jobType": "JOB", "filter": {"years": [2024]}}));
    assert_eq!(chunks_at_submit(&engine, years).await.1, 0, "a filter is planned by a worker");
    for id in [all, two, waiting] {
        proven(&engine, &work(&engine, id).await).await;
    }
    let small_chunks = fixture.engine(&job(STEP, "chunk.items = 2")).await;
    let (large, chunks) = chunks_at_submit(&small_chunks, Request::new("JOB")).await;
    assert_eq!(chunks, 0, "a table of many chunks is planned by a worker");
    proven(&small_chunks, &work(&small_chunks, large).await).await;
}

/// The condition would take a minute.
#[tokio::test]
async fn a_submit_does_not_wait_for_a_slow_condition() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(60).await;
    let slow = "source.where = \"pg_sleep(1) IS NOT NULL\"";
    let engine = fixture.engine(&job(STEP, slow)).await;
    assert_eq!(chunks_at_submit(&engine, Request::new("JOB")).await.1, 0);
}

async fn is_planned(engine: &Engine, job: JobId) -> bool {
    let segments = engine.store().segments(job).await.unwrap();
    segments.iter().all(|row| row.status == ChunkStatus::Completed)
}

/// The first job needs more than fifty seconds of database time on any machine.
#[tokio::test]
async fn a_job_is_planned_before_an_earlier_one_with_many_values_ends() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(VALUES).await;
    let slow = job(STEP, "source.where = \"pg_sleep(0.005) IS NOT NULL\"");
    let quick = job(STEP, "").replace("jobs.JOB", "jobs.QUICK");
    let engine = fixture.engine(&(slow + &quick)).await;
    let many = engine.submit(of_all_visits(), Engine::local_identity()).await.unwrap().id();
    let loader = Working::start(&engine, "loader", 0);
    let begun = async || engine.job(many).await.unwrap().chunks.total > 0;
    eventually("the first job is being planned", PATIENCE, begun).await;
    let request = asked(json!({"jobType": "QUICK", "filter": {"years": [2024]}}));
    let later = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    eventually("the later job is planned", PATIENCE, async || is_planned(&engine, later).await)
        .await;
    assert!(!is_planned(&engine, many).await, "the first job is still being planned");
    loader.stop().await;
}

on_each!(
    a_small_table_is_planned_by_its_submit,
    many_values_are_planned_in_few_queries,
    values_of_all_sizes_are_planned_and_worked,
);
