//! Jobs over float keys that JSON cannot represent, or only with all digits. Exactly the existing rows are
//! processed.

use crate::protocol::common::*;
use serde_json::json;
use windlass_core::{Change, DeadLetterStatus, ItemError, JobStatus, Outcome};
use windlass_engine::Engine;
use windlass_store::DeadLetterFilter;

/// The most difficult keys, in each database's syntax.
const POSTGRES: &str = "('NaN'), ('Infinity'), ('-Infinity'), ('5e-324'), ('1.7976931348623157e308'), \
                        ('0.30000000000000004'), ('-0'), ('123456.78901234567'), ('1e19')";
const SQLITE: &str = "(9e999), (-9e999), (5e-324), (1.7976931348623157e308), \
                      (0.30000000000000004), (-0.0), (123456.78901234567), (1e19)";
const MARIADB: &str = "(1.7976931348623157e308), (0.30000000000000004e0), (-0e0), \
                       (123456.78901234567e0), (1e19)";

/// A table `f` with these keys and 1 to 300.
async fn filled(fixture: &EngineFixture) -> i64 {
    let kind = fixture.spell_for_app("float8", "double", "double");
    fixture
        .app
        .run(&format!(
            "CREATE TABLE f (k {kind} NOT NULL PRIMARY KEY, n bigint NOT NULL DEFAULT 0, \
             version bigint NOT NULL DEFAULT 0)"
        ))
        .await;
    let odd = fixture.spell_for_app(POSTGRES, SQLITE, MARIADB);
    fixture.app.run(&format!("INSERT INTO f (k) VALUES {odd}")).await;
    let insert = "INSERT INTO f (k) WITH RECURSIVE n(i) AS \
                  (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i FROM n";
    fixture.app.run(insert).await;
    fixture.int("SELECT count(*) FROM f").await
}

fn job_of(step: &str) -> String {
    format!(
        "[jobs.JOB]\nsource.connection = \"app\"\nsource.table = \"f\"\nretry.attempts = 2\n\
         retry.backoff = \"1ms\"\nfailures.budget = 1000\nchunk.items = 7\n{step}\n"
    )
}

async fn run_in_segments(engine: &Engine) -> windlass_core::Job {
    let request = asked(json!({"jobType": "JOB", "parallelSegments": 4}));
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    work(engine, id).await
}

pub(crate) async fn a_statement_changes_every_row_once(fixture: EngineFixture) {
    let rows = filled(&fixture).await;
    let engine =
        fixture.engine(&job_of("step.sql = \"UPDATE f SET n = n + 1 WHERE {chunk}\"")).await;
    let done = run_in_segments(&engine).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.total, done.items.processed), (rows, rows));
    assert_eq!(fixture.int("SELECT count(*) FROM f WHERE n = 1").await, rows);
}

#[derive(serde::Deserialize)]
struct Row {
    k: f64,
    n: i64,
}

/// Every row fails at first, becomes a dead letter, and is found by its key for the redrive.
pub(crate) async fn every_row_can_be_a_dead_letter_and_be_redriven(fixture: EngineFixture) {
    let rows = filled(&fixture).await;
    let handler = |row: Row, _| async move {
        match row.n {
            0 => Err(ItemError::permanent(format!("{} is new", row.k))),
            n => Ok(Outcome::Done(Change::default().set("n", n + 1))),
        }
    };
    let jobs = job_of("step.handler = \"work\"\nstep.version = \"version\"");
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let first = run_in_segments(&engine).await;
    proven(&engine, &first).await;
    assert_eq!((first.items.total, first.items.dead), (rows, rows));
    assert_eq!(letters(&engine, first.id).await.len() as i64, rows);

    fixture.app.run("UPDATE f SET n = 1, version = version + 1").await;
    let filter =
        DeadLetterFilter { job: Some(first.id), limit: 1000, ..DeadLetterFilter::default() };
    let redriven = engine.redrive(&filter).await.unwrap();
    let again = work(&engine, redriven[0].job_id).await;
    proven(&engine, &again).await;
    assert_eq!((again.items.processed, again.items.skipped), (rows, 0));
    assert_eq!(fixture.int("SELECT count(*) FROM f WHERE n = 2").await, rows);
    let open = letters(&engine, first.id).await;
    assert!(open.iter().all(|letter| letter.status == DeadLetterStatus::Reprocessed));
}

/// `reduce` gets the infinite values that `map` returns.
pub(crate) async fn parts_preserve_every_value(fixture: EngineFixture) {
    let rows = filled(&fixture).await;
    fixture.app.run("CREATE TABLE found (day text, rows_seen bigint, odd bigint)").await;
    // Greater than every finite float but the greatest. In PostgreSQL, NaN is greater still.
    let step = "step.map = \"SELECT k, count(*) AS n FROM {source} WHERE {chunk} GROUP BY k\"\n\
                reduce = \"SELECT sum(n) AS rows_seen, sum(CASE WHEN k > 1e300 OR k < -1e300 THEN 1 ELSE 0 END) AS odd FROM parts\"\n\
                load = { connection = \"app\", table = \"found\", replace = [\"day\"] }";
    let engine = fixture.engine(&job_of(step)).await;
    let request = asked(json!({"jobType": "JOB", "params": {"day": "monday"}}));
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(fixture.int("SELECT rows_seen FROM found").await, rows);
    let odd = fixture.int("SELECT count(*) FROM f WHERE k > 1e300 OR k < -1e300").await;
    assert_eq!(fixture.int("SELECT odd FROM found").await, odd);
    proven(&engine, &done).await;
}

pub(crate) async fn an_export_has_every_row(fixture: EngineFixture) {
    let rows = filled(&fixture).await;
    let folder = fixture.folder.path().join("out");
    let step = format!(
        "step.export = {{ to = \"file:{}/{{job_id}}/\", format = \"jsonl\", columns = [\"k\"] }}",
        folder.display()
    );
    let engine = fixture.engine(&job_of(&step)).await;
    let done = run_in_segments(&engine).await;
    proven(&engine, &done).await;
    assert_eq!(done.items.processed, rows);
    let mut lines = std::collections::HashSet::new();
    for entry in std::fs::read_dir(folder.join(done.id.to_string())).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    assert_eq!(lines.len() as i64, rows, "each key once");
}

on_each!(
    a_statement_changes_every_row_once,
    every_row_can_be_a_dead_letter_and_be_redriven,
    parts_preserve_every_value,
    an_export_has_every_row,
);
