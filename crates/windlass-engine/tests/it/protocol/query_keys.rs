//! Keys of a query that are NULL or not unique are refused at submit. If rows change afterwards, the job fails with
//! the reason. It never completes without them.

use crate::protocol::common::*;
use windlass_core::{Change, ItemError, Job, JobStatus, Outcome};
use windlass_engine::{Engine, ItemContext, Verdict};

const ROWS: i64 = 60;

/// Visits with their line in the log. The key is the line, which is NULL if there is none.
const LEFT_JOIN: &str = "source.query = \"SELECT l.visit, v.id, v.amount FROM visits v \
                         LEFT JOIN log l ON l.visit = v.id\"\nsource.key = [\"visit\"]";

fn steps(fixture: &EngineFixture) -> [String; 3] {
    let to = fixture.folder.path().join("out");
    [
        "step.handler = \"work\"".to_owned(),
        format!(
            "step.export = {{ to = \"file:{}/{{job_id}}/\", format = \"jsonl\" }}",
            to.display()
        ),
        "step.sql = \"UPDATE visits SET amount = amount + 1 WHERE id IN \
         (SELECT visit FROM log l WHERE {chunk:l})\""
            .to_owned(),
    ]
}

async fn engine(fixture: &EngineFixture, step: &str) -> Engine {
    let more = if step.contains("export") {
        "chunk.items = 7"
    } else {
        "chunk.items = 7\nchunk.commit = 3"
    };
    let jobs = job(step, more).replace("source.table = \"visits\"", LEFT_JOIN);
    fixture.builder(&jobs).handler("work", note).connect().await.unwrap()
}

async fn note(record: serde_json::Value, _: ItemContext) -> Result<Outcome, ItemError> {
    let visit = record["id"].as_i64().unwrap_or_default();
    Ok(Change::default().insert("notes", [("visit", visit.into())]).into())
}

/// A line in the log for every visit up to this one.
async fn fixture_with_lines(fixture: &EngineFixture, lines: i64) -> EngineFixture {
    let fixture = fixture.another().await;
    fixture.visits(ROWS).await;
    fixture.app.run("CREATE TABLE notes (visit bigint NOT NULL)").await;
    fixture
        .app
        .run(&format!("INSERT INTO log (visit) SELECT id FROM visits WHERE id <= {lines}"))
        .await;
    fixture
}

async fn refused(engine: &Engine) -> String {
    let refused = engine.submit(request(), Engine::local_identity()).await;
    refused.expect_err("the source is refused").to_string()
}

async fn failed(engine: &Engine, job: &Job, why: &str) {
    assert_eq!(job.status, JobStatus::Failed, "{job:?}");
    let error = job.error.clone().unwrap_or_default();
    assert!(error.contains(why), "{error}");
    assert!(!engine.audit(job.id).await.unwrap().is_proven());
}

/// The job is completed and proven. For a statement over a query, the audit reports that it changes a table other than
/// its source, so that the rows do not show which items were processed.
async fn ended_well(engine: &Engine, job: &Job, step: &str) {
    if !step.contains("step.sql") {
        return proven(engine, job).await;
    }
    assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
    let audit = engine.audit(job.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{audit:#?}");
    assert!(audit.not_judged.iter().all(|why| why.contains("another table")), "{audit:#?}");
}

pub(crate) async fn a_null_key_is_refused_at_submit_and_fails_the_job_if_inserted_later(
    fixture: EngineFixture,
) {
    for step in steps(&fixture) {
        let fixture = fixture_with_lines(&fixture, ROWS - 1).await;
        let engine = engine(&fixture, &step).await;
        let error = refused(&engine).await;
        assert!(error.contains("`visit` is NULL") && error.contains("source.where"), "{error}");

        fixture.app.run(&format!("INSERT INTO log (visit) VALUES ({ROWS})")).await;
        let id = submit(&engine).await;
        fixture.app.run("DELETE FROM log WHERE visit = 30").await;
        let done = work(&engine, id).await;
        failed(&engine, &done, "`visit` is NULL").await;
        assert_eq!(done.items.processed, 0);

        // After the correction, the job is planned again.
        fixture.app.run("INSERT INTO log (visit) VALUES (30)").await;
        engine.retry(id).await.unwrap();
        let done = work(&engine, id).await;
        ended_well(&engine, &done, &step).await;
        assert_eq!((done.items.total, done.items.processed), (ROWS, ROWS), "{step}");
    }
}

pub(crate) async fn null_keys_outside_the_condition_are_allowed(fixture: EngineFixture) {
    for step in steps(&fixture) {
        let fixture = fixture_with_lines(&fixture, 50).await;
        let step = format!("{step}\nsource.where = \"visit IS NOT NULL\"");
        let engine = engine(&fixture, &step).await;
        let done = run(&engine).await;
        ended_well(&engine, &done, &step).await;
        assert_eq!((done.items.total, done.items.processed), (50, 50), "{step}");
    }
}

pub(crate) async fn a_repeated_key_is_refused_unless_the_step_is_a_statement(
    fixture: EngineFixture,
) {
    for step in steps(&fixture) {
        let fixture = fixture_with_lines(&fixture, ROWS).await;
        let engine = engine(&fixture, &step).await;
        // Ten repeated keys, some of them at the end of a chunk of seven or of a commit of three.
        let repeat = "INSERT INTO log (visit) SELECT id FROM visits WHERE id % 6 = 0";
        if step.contains("step.sql") {
            fixture.app.run(repeat).await;
            let done = run(&engine).await;
            ended_well(&engine, &done, &step).await;
            let items = &done.items;
            assert_eq!((items.total, items.processed, items.skipped), (70, 60, 10), "{items:?}");
            fixture.each_once(ROWS).await;
            continue;
        }
        let id = submit(&engine).await;
        fixture.app.run(repeat).await;
        let done = work(&engine, id).await;
        failed(&engine, &done, "more than one row").await;
        assert_eq!((done.items.processed, fixture.int("SELECT count(*) FROM notes").await), (0, 0));
        let engine = self::engine(&fixture, &step).await;
        let error = refused(&engine).await;
        assert!(error.contains("(visit) = (6)") || error.contains("more than one row"), "{error}");
    }
}

/// The keys are unique when the job is planned, and not when a chunk is read.
pub(crate) async fn a_key_that_repeats_after_planning_fails_its_chunk(fixture: EngineFixture) {
    for repeated in [5, 6, 7, 8] {
        let fixture = fixture_with_lines(&fixture, ROWS).await;
        let engine = engine(&fixture, &steps(&fixture)[0]).await;
        let id = submit(&engine).await;
        plan_job(&engine, id).await;
        fixture.app.run(&format!("INSERT INTO log (visit) VALUES ({repeated})")).await;
        let done = work(&engine, id).await;
        failed(&engine, &done, "more than one row").await;
        // No item was worked twice, and the results of the other chunks are kept.
        let notes = fixture.int("SELECT count(*) FROM notes").await;
        assert_eq!(notes, fixture.int("SELECT count(DISTINCT visit) FROM notes").await);
        assert!(notes >= ROWS - 7, "{notes}");

        fixture.app.run("DELETE FROM log").await;
        fixture.app.run("INSERT INTO log (visit) SELECT id FROM visits").await;
        engine.retry(id).await.unwrap();
        let done = work(&engine, id).await;
        proven(&engine, &done).await;
        assert_eq!(fixture.int("SELECT count(*) FROM notes").await, ROWS);
    }
}

on_each!(
    a_null_key_is_refused_at_submit_and_fails_the_job_if_inserted_later,
    null_keys_outside_the_condition_are_allowed,
    a_repeated_key_is_refused_unless_the_step_is_a_statement,
    a_key_that_repeats_after_planning_fails_its_chunk,
);

/// SQLite allows NULL in a primary key. One that is inserted after the check fails the job.
#[tokio::test]
async fn a_null_in_a_primary_key_of_sqlite_fails_the_job() {
    let fixture = EngineFixture::sqlite().await;
    fixture
        .app
        .run("CREATE TABLE words (id text PRIMARY KEY, amount bigint NOT NULL DEFAULT 0)")
        .await;
    fixture.app.run("INSERT INTO words (id) VALUES ('a'), ('b')").await;
    let jobs = job("step.sql = \"UPDATE words SET amount = 1 WHERE {chunk}\"", "");
    let engine = fixture.engine(&jobs.replace("visits", "words")).await;
    let id = submit(&engine).await;
    fixture.app.run("INSERT INTO words (id) VALUES (NULL)").await;
    let done = work(&engine, id).await;
    failed(&engine, &done, "`id` is NULL").await;
    fixture.app.run("DELETE FROM words WHERE id IS NULL").await;
    engine.retry(id).await.unwrap();
    let done = work(&engine, id).await;
    proven(&engine, &done).await;
    assert_eq!(done.items.processed, 2);
}

/// A parent table whose child has the same keys: statements reach all rows, other steps are refused.
#[tokio::test]
async fn a_parent_of_inheritance_is_worked_by_statements_only() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(20).await;
    fixture.app.run("CREATE TABLE old_visits () INHERITS (visits); INSERT INTO old_visits SELECT * FROM visits").await;
    for step in [HANDLER, "step.refresh = true\nstep.version = \"version\""] {
        let engine = fixture.builder(&job(step, "")).handler("work", note).connect().await.unwrap();
        let error = refused(&engine).await;
        assert!(
            error.contains("inherited by `old_visits`") && error.contains("FROM ONLY"),
            "{error}"
        );
    }
    let engine = fixture.engine(&job(ADD, "chunk.items = 7\nchunk.commit = 2")).await;
    let done = complete(&engine).await;
    assert_eq!((done.items.total, done.items.processed), (40, 40));
    fixture.each_once(40).await;
    // The parent alone, as the message suggests.
    let only = "source.query = \"SELECT * FROM ONLY visits\"\nsource.key = [\"id\"]";
    fixture.app.run("CREATE TABLE notes (visit bigint NOT NULL)").await;
    let jobs = job("step.handler = \"work\"", "").replace("source.table = \"visits\"", only);
    let engine = fixture.builder(&jobs).handler("work", note).connect().await.unwrap();
    assert_eq!(complete(&engine).await.items.processed, 20);
}
