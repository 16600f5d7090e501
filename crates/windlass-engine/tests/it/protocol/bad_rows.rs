//! A row that makes the `map` of its chunk fail becomes a dead letter. The result has the other rows, and the row
//! after a redrive.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{Job, JobStatus};
use windlass_engine::Engine;

const ROWS: i64 = 1000;
/// Rows of several chunks, including the first, the last and neighbours.
const BAD: [i64; 6] = [1, 250, 251, 499, 777, 1000];

/// Adds up the absolute amounts. The least integer has none.
fn summing(more: &str) -> String {
    let step = "step.map = \"SELECT count(*) AS n, sum(abs(amount)) AS total FROM {source} WHERE {chunk}\"\n\
                reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"\n\
                load = { connection = \"app\", table = \"totals\", replace = [\"day\"] }";
    job(step, &format!("chunk.items = 250\n{more}"))
}

async fn summed(fixture: &EngineFixture, more: &str) -> (Engine, Job) {
    fixture.visits(ROWS).await;
    fixture.app.run("UPDATE visits SET amount = id").await;
    for id in BAD {
        let spoil = format!("UPDATE visits SET amount = -9223372036854775808 WHERE id = {id}");
        fixture.app.run(&spoil).await;
    }
    fixture.app.run("CREATE TABLE totals (day text, n bigint, total bigint)").await;
    let engine = fixture.engine(&summing(more)).await;
    let monday = json!({"jobType": "JOB", "params": {"day": "monday"}, "parallelSegments": 1});
    let id = engine.submit(asked(monday), Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    (engine, done)
}

/// The table has the sums of all rows but these.
async fn has_all_but(fixture: &EngineFixture, missing: &[i64]) {
    let total = ROWS * (ROWS + 1) / 2 - missing.iter().sum::<i64>();
    let sum = async |column: &str| fixture.int(&format!("SELECT sum({column}) FROM totals")).await;
    assert_eq!((sum("n").await, sum("total").await), (ROWS - missing.len() as i64, total));
}

pub(crate) async fn a_bad_row_of_a_map_is_a_dead_letter(fixture: EngineFixture) {
    let (engine, done) = summed(&fixture, "").await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 6, 6));
    has_all_but(&fixture, &BAD).await;
    let found = letters(&engine, done.id).await;
    assert_eq!(keys(&found), BAD);
    for letter in &found {
        assert!(letter.error.contains("out of range") || letter.error.contains("integer overflow"));
        assert_eq!(letter.record["amount"], i64::MIN, "the whole record");
    }

    fixture.app.run("UPDATE visits SET amount = id WHERE id <> 777").await;
    let redriven = engine.redrive(&Default::default()).await.unwrap();
    let again = work(&engine, redriven[0].job_id).await;
    assert_eq!((again.status, &again.error), (JobStatus::Completed, &None));
    assert_eq!((again.items.processed, again.items.dead), (5, 1));
    has_all_but(&fixture, &[777]).await;
}

pub(crate) async fn a_bad_row_fails_the_job_if_the_definition_says_so(fixture: EngineFixture) {
    let (engine, failed) = summed(&fixture, "step.on_bad_row = \"fail\"").await;
    assert_eq!((failed.status, failed.items.dead), (JobStatus::Failed, 0));
    assert_eq!(fixture.int("SELECT count(*) FROM totals").await, 0);
    fixture.app.run("UPDATE visits SET amount = id").await;
    engine.retry(failed.id).await.unwrap();
    proven(&engine, &work(&engine, failed.id).await).await;
    has_all_but(&fixture, &[]).await;
}

pub(crate) async fn more_bad_rows_than_the_budget_pause_the_job(fixture: EngineFixture) {
    // Chunks of keys, so that the last chunk has none of the bad rows.
    let more = "failures = { budget = 3, on_exceeded = \"pause\" }\nsource.consistency = \"chunk\"";
    let (_, paused) = summed(&fixture, more).await;
    assert_eq!(paused.status, JobStatus::Paused);
    let error = paused.error.unwrap_or_default();
    assert!(error.contains("budget exceeded"), "{error}");
    assert_eq!(fixture.int("SELECT count(*) FROM totals").await, 0);
}

/// The result of a few rows must not replace that of all.
pub(crate) async fn a_redrive_without_the_parts_of_its_job_fails_and_loads_nothing(
    fixture: EngineFixture,
) {
    let (engine, done) = summed(&fixture, "").await;
    proven(&engine, &done).await;
    let chunks = std::time::Duration::ZERO;
    let retention = windlass_core::Retention { chunks, ..windlass_core::Retention::default() };
    assert_eq!(engine.prune(Some(&retention)).await.unwrap().emptied, 1);
    fixture.app.run("UPDATE visits SET amount = id").await;
    let redriven = engine.redrive(&Default::default()).await.unwrap();
    let failed = work(&engine, redriven[0].job_id).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let error = failed.error.unwrap_or_default();
    assert!(error.contains("pruned; submit the job type again"), "{error}");
    has_all_but(&fixture, &BAD).await;
}

on_each!(
    a_redrive_without_the_parts_of_its_job_fails_and_loads_nothing,
    a_bad_row_of_a_map_is_a_dead_letter,
    a_bad_row_fails_the_job_if_the_definition_says_so,
    more_bad_rows_than_the_budget_pause_the_job,
);
