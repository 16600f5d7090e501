//! Fan-in: each chunk is mapped to a part, the parts are reduced once, and the result is loaded once, with exact sums.

use crate::protocol::common::*;
use serde_json::json;
use windlass_connectors::EmittedCursor;
use windlass_core::{Change, JobStatus, Outcome, PaginationState};
use windlass_engine::Engine;

const MAP: &str = "step.map = \"SELECT county, count(*) AS n, sum(amount) AS total FROM {source} \
                   WHERE {chunk} GROUP BY county\"\n\
                   reduce = \"SELECT county, sum(n) AS n, sum(total) AS total FROM parts \
                   GROUP BY county ORDER BY county\"\n\
                   load = { connection = \"app\", table = \"totals\", replace = [\"day\"] }\n\
                   chunk.items = 7";

/// Visits with amounts, and the table for their totals.
async fn visits(fixture: &EngineFixture, rows: i64) {
    fixture.visits(rows).await;
    fixture.app.run("UPDATE visits SET amount = id * 3").await;
    let create = "CREATE TABLE totals (day text, county text, n bigint, total bigint)";
    fixture.app.run(create).await;
    fixture
        .app
        .run("INSERT INTO totals VALUES ('monday', 'old', 1, 1), ('sunday', 'old', 1, 1)")
        .await;
}

fn on(day: &str) -> windlass_core::Request {
    asked(json!({"jobType": "JOB", "params": {"day": day}}))
}

async fn run_on(engine: &Engine, day: &str) -> windlass_core::Job {
    let id = engine.submit(on(day), Engine::local_identity()).await.unwrap().id();
    work(engine, id).await
}

/// Compares the totals for monday with the database's own sums.
async fn is_right(fixture: &EngineFixture) {
    let wrong = "SELECT count(*) FROM (SELECT county, count(*) AS n, sum(amount) AS total FROM visits \
                 GROUP BY county) AS own LEFT JOIN totals AS t ON t.county = own.county \
                 AND t.day = 'monday' AND t.n = own.n AND t.total = own.total WHERE t.day IS NULL";
    assert_eq!(fixture.int(wrong).await, 0);
    let counties = fixture.int("SELECT count(DISTINCT county) FROM visits").await;
    let loaded = "SELECT count(*) FROM totals WHERE day = 'monday'";
    assert_eq!(fixture.int(loaded).await, counties, "nothing else");
    assert_eq!(
        fixture.int("SELECT count(*) FROM totals WHERE day = 'sunday'").await,
        1,
        "left alone"
    );
}

pub(crate) async fn totals_equal_the_sums_of_the_database(fixture: EngineFixture) {
    visits(&fixture, 100).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let done = run_on(&engine, "monday").await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert!(done.chunks.total > 10, "{done:?}");
    assert_eq!(done.items.processed, 100);
    is_right(&fixture).await;
    let output = engine.output(done.id, &EmittedCursor::default(), 100).await.unwrap();
    assert!(output[0].fields.contains("\"county\""), "{output:?}");
    // A second run replaces the same rows.
    run_on(&engine, "monday").await;
    is_right(&fixture).await;
    assert!(engine.audit(done.id).await.unwrap().is_proven());
}

pub(crate) async fn an_empty_source_produces_no_rows(fixture: EngineFixture) {
    visits(&fixture, 1).await;
    fixture.app.run("DELETE FROM visits").await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let done = run_on(&engine, "monday").await;
    assert_eq!(done.status, JobStatus::Completed);
    assert_eq!(fixture.int("SELECT count(*) FROM totals WHERE day = 'monday'").await, 0);
    assert_eq!(fixture.int("SELECT count(*) FROM totals").await, 1);
}

/// A merge that stalled after it computed its result, while another process merged.
pub(crate) async fn a_merge_that_continues_too_late_loads_nothing(fixture: EngineFixture) {
    visits(&fixture, 20).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let id = engine.submit(on("monday"), Engine::local_identity()).await.unwrap().id();
    plan_job(&engine, id).await;
    // The chunks are worked, and the merge is leased and abandoned.
    let by = by_hand(id);
    let stalled = loop {
        for chunk in engine.store().lease_chunks(&by, 100).await.unwrap() {
            let part = windlass_store::NewPart {
                name: None,
                rows: 0,
                bytes: 0,
                sha256: String::new(),
                content_hash: String::new(),
                content: Some(Vec::new()),
            };
            let progress = windlass_store::Progress {
                cursor: windlass_core::Cursor::End,
                ..Default::default()
            };
            engine.store().complete_part(chunk.lease, &progress, &part).await.unwrap();
        }
        if let Some(segment) = engine.store().lease_segments(&by, 1).await.unwrap().pop() {
            break segment;
        }
    };
    assert_eq!(stalled.state, PaginationState::Merge);
    fixture.expire("windlass_segments").await;
    engine.store().rescue().await.unwrap();
    let next = engine.store().lease_segments(&by, 1).await.unwrap().remove(0);
    let fence = |lease: windlass_store::SegmentLease| windlass_connectors::Fence {
        chunk: windlass_core::ChunkId { job: id, number: windlass_store::MERGED },
        epoch: lease.epoch,
        nonce: lease.nonce,
        lost: false,
    };
    let app = engine.connection("app").unwrap();
    app.prepare().await.unwrap();
    assert!(app.fence(&[fence(next.lease)]).await.unwrap()[0].is_some());
    let late = app.fence(&[fence(stalled.lease)]).await.unwrap().remove(0);
    assert!(late.is_none(), "its epoch is over");
}

pub(crate) async fn a_partial_request_writes_a_report_and_never_loads(fixture: EngineFixture) {
    visits(&fixture, 30).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let request = json!({"jobType": "JOB", "params": {"day": "monday"}, "ids": [1, 2]});
    let id = engine.submit(asked(request), Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    assert_eq!(done.status, JobStatus::Completed);
    assert!(!engine.output(id, &EmittedCursor::default(), 10).await.unwrap().is_empty());
    assert_eq!(fixture.int("SELECT count(*) FROM totals WHERE county = 'old'").await, 2);
}

pub(crate) async fn a_failed_load_can_be_retried(fixture: EngineFixture) {
    visits(&fixture, 30).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let id = engine.submit(on("monday"), Engine::local_identity()).await.unwrap().id();
    fixture.app.run("ALTER TABLE totals RENAME TO gone").await;
    let failed = work(&engine, id).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(failed.error.unwrap().contains("totals"));
    assert_eq!(failed.chunks.completed, failed.chunks.total);
    fixture.app.run("ALTER TABLE gone RENAME TO totals").await;
    engine.retry(id).await.unwrap();
    assert_eq!(work(&engine, id).await.status, JobStatus::Completed);
    is_right(&fixture).await;
}

pub(crate) async fn emitted_rows_are_reduced(fixture: EngineFixture) {
    visits(&fixture, 50).await;
    let handler = |visit: Visit, _| async move {
        let emit = vec![
            [
                ("county".to_owned(), format!("c{}", visit.id % 3).into()),
                ("amount".to_owned(), visit.amount.into()),
            ]
            .into(),
        ];
        Ok(Outcome::Done(Change { emit, ..Change::default() }))
    };
    let more = "reduce = \"SELECT county, count(*) AS n, sum(amount) AS total FROM parts GROUP BY county\"\n\
                load = { connection = \"app\", table = \"totals\", replace = [\"day\"] }\nchunk.items = 8";
    let engine = fixture.builder(&job(HANDLER, more)).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let done = run_on(&engine, "monday").await;
    assert_eq!((done.status, done.error), (JobStatus::Completed, None));
    let sums = fixture.int("SELECT sum(total) FROM totals WHERE day = 'monday'").await;
    assert_eq!(sums, fixture.int("SELECT sum(amount) FROM visits").await);
    assert_eq!(fixture.int("SELECT sum(n) FROM totals WHERE day = 'monday'").await, 50);
}

/// A row that is gone while its chunk is read, and there again when the audit counts, was missed. Maps count what they
/// read, whether their statement returns that number or not.
pub(crate) async fn a_map_that_missed_a_row_is_not_proven(fixture: EngineFixture) {
    let group = "FROM {source} WHERE {chunk} GROUP BY county";
    let report =
        format!("report = {{ to = \"file:{}/map.json\" }}", fixture.folder.path().display());
    for select in [
        format!("SELECT county, count(*) AS n {group}"),
        format!("SELECT county, sum(amount) AS total {group}"),
        format!("SELECT county, count(*) AS n {group} HAVING count(*) > 100"),
        "SELECT count(*) AS n FROM {source} WHERE {chunk} AND amount > 9".to_owned(),
        "SELECT v.id, count(*) AS n FROM {source} AS v JOIN log ON log.visit = v.id \
         WHERE {chunk:v} GROUP BY v.id"
            .to_owned(),
        "SELECT id FROM {source} WHERE {chunk}".to_owned(),
    ] {
        let fixture = fixture.another().await;
        fixture.visits(30).await;
        let step =
            format!("step.map = \"{select}\"\nchunk.items = 7\nsource.consistency = \"chunk\"");
        let engine = fixture.engine(&job(&step, &report)).await;
        let done = complete(&engine).await;
        assert_eq!((done.items.total, done.items.processed), (30, 30), "{select}");

        let id = submit(&engine).await;
        plan_job(&engine, id).await;
        fixture.app.run("DELETE FROM visits WHERE id = 5").await;
        let done = work(&engine, id).await;
        fixture.app.run("INSERT INTO visits (id) VALUES (5)").await;
        assert_eq!((done.items.total, done.items.processed), (30, 29), "{select}");
        let audit = engine.audit(id).await.unwrap();
        assert!(!audit.is_proven(), "{select}: {audit:#?}");
        let reason = "0 appeared and 1 disappeared between planning and reading (chunks 0)";
        assert!(audit.not_judged.iter().any(|line| line.contains(reason)), "{audit:#?}");
    }
}

/// A listed key without a record is skipped, as in the other steps.
pub(crate) async fn a_map_of_listed_keys_skips_those_without_a_record(fixture: EngineFixture) {
    visits(&fixture, 30).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let request = json!({"jobType": "JOB", "params": {"day": "monday"}, "ids": [1, 2, 99]});
    let id = engine.submit(asked(request), Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    let items = &done.items;
    assert_eq!((items.total, items.processed, items.skipped), (3, 2, 1), "{items:?}");
    proven(&engine, &done).await;
}

on_each!(
    a_map_that_missed_a_row_is_not_proven,
    a_map_of_listed_keys_skips_those_without_a_record,
    totals_equal_the_sums_of_the_database,
    an_empty_source_produces_no_rows,
    a_merge_that_continues_too_late_loads_nothing,
    a_partial_request_writes_a_report_and_never_loads,
    a_failed_load_can_be_retried,
    emitted_rows_are_reduced,
);
