//! The outbox relay: a committed row of the outbox becomes exactly one job.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{Config, Identity, JobId, Request};
use windlass_engine::Engine;
use windlass_store::JobFilter;
use windlass_testkit::{Options, PostgresServer, eventually};

/// A job type over items and one over a table.
const JOBS: &str = "outbox = true\n\
    [jobs.JOB]\nsource = { connection = \"app\", items = true, key = [\"id\"], unit = \"fileId\" }\n\
    step.handler = \"work\"\n\
    [jobs.COUNTY]\nsource = { connection = \"app\", table = \"visits\", claims = { county = \"county\" } }\n\
    step.sql = \"UPDATE visits SET amount = amount + 1 WHERE {chunk}\"\n";

async fn engine(fixture: &EngineFixture) -> Engine {
    let engine = fixture.engine(JOBS).await;
    engine.prepare_outbox("app").await.unwrap();
    engine
}

/// Inserts a request as an application does.
async fn put(fixture: &EngineFixture, job_type: &str, request: serde_json::Value) {
    let postgres = format!("SELECT windlass_enqueue('{job_type}', '{request}')");
    let sqlite = format!(
        "INSERT INTO windlass_outbox (job_type, request) VALUES ('{job_type}', '{request}')"
    );
    fixture.app.run(fixture.spell(&postgres, &sqlite)).await;
}

fn point(id: i64, file: &str) -> serde_json::Value {
    json!({"id": id, "fileId": file})
}

async fn jobs(engine: &Engine) -> Vec<windlass_core::Job> {
    engine.store().jobs(&JobFilter { limit: 1000, ..JobFilter::default() }).await.unwrap()
}

async fn waiting(engine: &Engine) -> Vec<windlass_connectors::Waiting> {
    engine.waiting("app", 100).await.unwrap().unwrap()
}

pub(crate) async fn a_row_that_was_submitted_but_not_removed_is_the_same_job(
    fixture: EngineFixture,
) {
    let engine = engine(&fixture).await;
    put(&fixture, "JOB", json!({"items": [point(1, "a")]})).await;
    let id = waiting(&engine).await[0].id;
    let refuse = fixture.spell(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'not now'; END $$; \
         CREATE TRIGGER refuse BEFORE DELETE ON windlass_outbox FOR EACH ROW EXECUTE FUNCTION refuse()",
        "CREATE TRIGGER refuse BEFORE DELETE ON windlass_outbox \
             BEGIN SELECT RAISE(ABORT, 'not now'); END",
    );
    fixture.app.run(refuse).await;
    for _ in 0..3 {
        let away = engine.relay("app").await.unwrap().unavailable.unwrap();
        assert!(away.contains("not now") && away.contains(&id.to_string()), "{away}");
    }
    assert_eq!(waiting(&engine).await.len(), 1, "the row stays");
    fixture
        .app
        .run(fixture.spell("DROP TRIGGER refuse ON windlass_outbox", "DROP TRIGGER refuse"))
        .await;
    assert_eq!(engine.relay("app").await.unwrap().submitted, 1);
    let jobs: Vec<JobId> = jobs(&engine).await.iter().map(|job| job.id).collect();
    assert_eq!(jobs, [id], "one job, with the id that the application was told");
    assert_eq!(waiting(&engine).await.len(), 0);
}

pub(crate) async fn a_refused_row_stays_with_its_reason_and_blocks_no_other_row(
    fixture: EngineFixture,
) {
    fixture.visits(3).await;
    let engine = engine(&fixture).await;
    // As before the database was told what it can refuse itself.
    fixture.app.run("DELETE FROM windlass_outbox_types").await;
    for (job_type, request) in [
        ("NONE", json!({})),
        ("JOB", json!({"items": [point(1, "a"), point(2, "b")]})),
        ("JOB", json!({"items": [point(1, "a"), point(1, "a")]})),
        ("JOB", json!({"colour": 1})),
        ("COUNTY", json!({})),
        ("COUNTY", json!({"claims": {"county": "north"}, "submittedBy": "clerk"})),
    ] {
        put(&fixture, job_type, request).await;
    }
    let relayed = engine.relay("app").await.unwrap();
    assert_eq!((relayed.submitted, relayed.refused), (1, 5));
    let taken = jobs(&engine).await;
    assert_eq!((taken.len(), taken[0].submitted_by.as_str()), (1, "clerk"));
    let reasons: Vec<String> =
        waiting(&engine).await.into_iter().filter_map(|row| row.error).collect();
    for expected in [
        "there is no job type `NONE`",
        "items[1].fileId: is \"b\", but items[0].fileId is \"a\"",
        "items[1]: has the key of items[0]",
        "unknown field `colour`",
        "claims.county",
    ] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:#?}");
    }
    // The job has the claims of the row, and reaches only what they allow.
    fixture.app.run("UPDATE visits SET county = 'south' WHERE id = 2").await;
    let job = work(&engine, taken[0].id).await;
    assert_eq!(job.items.processed, 2);
}

pub(crate) async fn a_row_without_items_is_removed_and_makes_no_job(fixture: EngineFixture) {
    fixture.visits(3).await;
    let engine = engine(&fixture).await;
    let empty = [
        ("JOB", json!({"items": []})),
        ("JOB", json!({"params": {"fileId": "a"}})),
        // Without its list this would be a request for the whole table.
        ("COUNTY", json!({"items": [], "claims": {"county": "north"}})),
        ("NONE", json!({"items": []})),
    ];
    for (job_type, request) in &empty {
        put(&fixture, job_type, request.clone()).await;
    }
    let relayed = engine.relay("app").await.unwrap();
    assert_eq!((relayed.submitted, relayed.refused), (empty.len() as u64, 0));
    assert_eq!((waiting(&engine).await.len(), jobs(&engine).await.len()), (0, 0));
}

pub(crate) async fn a_worker_creates_the_outbox_and_relays_its_rows(fixture: EngineFixture) {
    let engine = fixture.engine(JOBS).await;
    let worker = Working::start(&engine, "worker", 1);
    let made = async || engine.waiting("app", 1).await.unwrap().is_some();
    eventually("the outbox is made", PATIENCE, made).await;
    put(&fixture, "JOB", json!({"items": [point(1, "a")], "priority": 3})).await;
    eventually("it is a job", PATIENCE, async || !jobs(&engine).await.is_empty()).await;
    assert_eq!(jobs(&engine).await[0].priority, 3);
    worker.stop().await;
}

on_both!(
    a_row_that_was_submitted_but_not_removed_is_the_same_job,
    a_refused_row_stays_with_its_reason_and_blocks_no_other_row,
    a_row_without_items_is_removed_and_makes_no_job,
    a_worker_creates_the_outbox_and_relays_its_rows,
);

/// An unavailable store refuses nothing: no attempt is counted, and the row is submitted later.
#[tokio::test]
async fn while_the_store_is_unavailable_rows_wait_without_failed_attempts() {
    let server = PostgresServer::start(Options::default());
    let store = server.database().await;
    let fixture = EngineFixture::sqlite().await;
    let config = Config::parse(&toml(&fixture.app.url(), store.url(), JOBS), |_| None).unwrap();
    let engine = Engine::builder(config).connect().await.unwrap();
    engine.prepare_outbox("app").await.unwrap();
    put(&fixture, "JOB", json!({"items": [point(1, "a")]})).await;
    server.stop_immediate();
    let relayed = engine.relay("app").await.unwrap();
    assert!(relayed.unavailable.is_some() && relayed.submitted == 0, "{relayed:?}");
    let row = waiting(&engine).await.remove(0);
    assert_eq!((row.attempts, row.error), (0, None));
    server.start_again();
    eventually("it is relayed", PATIENCE, async || {
        engine.relay("app").await.unwrap().submitted == 1
    })
    .await;
    assert_eq!(jobs(&engine).await[0].id, row.id);
}

/// Two submits with the same idempotency key are one job, through the outbox or the API.
#[tokio::test]
async fn an_idempotency_key_is_shared_by_the_outbox_and_the_api() {
    let fixture = EngineFixture::sqlite().await;
    let engine = engine(&fixture).await;
    let items = json!([point(1, "a")]);
    let request = json!({"items": items, "idempotencyKey": "k"});
    put(&fixture, "JOB", request.clone()).await;
    put(&fixture, "JOB", request).await;
    assert_eq!(engine.relay("app").await.unwrap().submitted, 2);
    let request = Request {
        items: items.as_array().cloned(),
        idempotency_key: Some("k".to_owned()),
        ..Request::new("JOB")
    };
    let identity = Identity { name: "outbox".to_owned(), ..Identity::default() };
    let id = engine.submit(request, identity).await.unwrap().id();
    assert_eq!(jobs(&engine).await.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
}
