//! The audit proves correct jobs and no others. Each test removes or changes rows of the store, the ledger and the
//! source; the verdict must then not be *proven*, and the audit must state the reason.

use crate::protocol::common::*;
use serde_json::json;
use std::collections::BTreeMap;
use windlass_core::{Change, ItemError, Job, JobId, Outcome, Request, Value};
use windlass_engine::{Audit, Drift, Engine, Verdict};
use windlass_store::DeadLetterFilter;

/// A change to a table that the engine does not know of.
struct Mutation {
    side: Side,
    table: &'static str,
    /// `ID` stands for the job's id.
    sql: &'static str,
    /// A part of the reason.
    says: &'static str,
}

#[derive(Clone, Copy)]
enum Side {
    Store,
    App,
}

const fn store(table: &'static str, sql: &'static str, says: &'static str) -> Mutation {
    Mutation { side: Side::Store, table, sql, says }
}

const fn app(table: &'static str, sql: &'static str, says: &'static str) -> Mutation {
    Mutation { side: Side::App, table, sql, says }
}

/// Changes for every job with chunks.
const CHUNKS: [Mutation; 8] = [
    store(
        "windlass_chunks",
        "DELETE FROM windlass_chunks WHERE job_id = 'ID' AND number = 0",
        "chunk 0 is missing",
    ),
    store(
        "windlass_chunks",
        "DELETE FROM windlass_chunks WHERE job_id = 'ID' AND number = 1",
        "the job's row has",
    ),
    store(
        "windlass_chunks",
        "DELETE FROM windlass_chunks WHERE job_id = 'ID' AND number =
         (SELECT max(number) FROM windlass_chunks WHERE job_id = 'ID')",
        "but its chunks have",
    ),
    store(
        "windlass_chunks",
        "UPDATE windlass_chunks SET processed = processed + 1, read = read + 1
         WHERE job_id = 'ID' AND number = 1",
        "the job's row has",
    ),
    store(
        "windlass_chunks",
        "UPDATE windlass_chunks SET cursor = 'null' WHERE job_id = 'ID' AND number = 1",
        "chunk 1 did not reach its end",
    ),
    store(
        "windlass_chunks",
        "UPDATE windlass_chunks SET items = items + 1 WHERE job_id = 'ID' AND number = 1",
        "enqueued",
    ),
    store(
        "windlass_chunks",
        "UPDATE windlass_chunks SET epoch = epoch + 1 WHERE job_id = 'ID' AND number = 1",
        "epoch",
    ),
    store(
        "windlass_segments",
        "DELETE FROM windlass_segments WHERE job_id = 'ID' AND number =
         (SELECT max(number) FROM windlass_segments WHERE job_id = 'ID')",
        "",
    ),
];

/// Changes for every job with a ledger.
const LEDGER: [Mutation; 7] = [
    app(
        "windlass_ledger",
        "DELETE FROM windlass_ledger WHERE job_id = 'ID' AND chunk = 0",
        "the ledger has no row for chunk 0",
    ),
    app(
        "windlass_ledger",
        "DELETE FROM windlass_ledger WHERE job_id = 'ID'",
        "the ledger has no row for chunk 1",
    ),
    app(
        "windlass_ledger",
        "UPDATE windlass_ledger SET processed = processed + 1 WHERE job_id = 'ID' AND chunk = 1",
        "the ledger counts",
    ),
    app(
        "windlass_ledger",
        "UPDATE windlass_ledger SET CURSOR = 'null', READ = 0, processed = 0, skipped = 0, dead = 0,
         commits = 0 WHERE job_id = 'ID' AND chunk = 1",
        "not at the end",
    ),
    app(
        "windlass_ledger",
        "UPDATE windlass_ledger SET epoch = epoch + 1 WHERE job_id = 'ID' AND chunk = 1",
        "epoch",
    ),
    app(
        "windlass_ledger",
        "UPDATE windlass_ledger SET chunk = 99 WHERE job_id = 'ID' AND chunk = 1",
        "which is not in the store",
    ),
    app(
        "windlass_deferred",
        "INSERT INTO windlass_deferred (job_id, chunk, item_key, state, attempts, conflicts, error,
         context, record, due_at) VALUES ('ID', 1, '[5]', 'retry', 1, 0, 'x', 'null', 'null', DUE)",
        "still deferred",
    ),
];

/// Changes for a source of which all rows were planned.
const SOURCE: [Mutation; 3] = [
    app("visits", "DELETE FROM visits WHERE id = 5", "0 appeared and 1 disappeared"),
    app("visits", "INSERT INTO visits (id) VALUES (9)", "1 appeared and 0 disappeared"),
    app("visits", "UPDATE visits SET id = 9 WHERE id = 40", "1 appeared and 1 disappeared"),
];

/// Thirty visits with gaps between their ids.
async fn visits(fixture: &EngineFixture) {
    fixture.visits(45).await;
    fixture.app.run("DELETE FROM visits WHERE id % 3 = 0").await;
}

/// Jobs with seven items per chunk.
fn jobs(step: &str, more: &str) -> String {
    job(step, &format!("chunk.items = 7\n{more}"))
}

async fn submitted(engine: &Engine, request: Request) -> Job {
    let id = engine.submit(request, Engine::local_identity()).await.unwrap().id();
    work(engine, id).await
}

/// Everything that an audit reports.
fn reasons(audit: &Audit) -> String {
    audit.findings.iter().chain(&audit.not_judged).map(|line| format!("{line}\n")).collect()
}

/// The job is proven. After each change it is not, and after undoing the change it is again.
async fn only_proven_unchanged(
    fixture: &EngineFixture,
    engine: &Engine,
    done: &Job,
    mutations: impl IntoIterator<Item = &Mutation>,
) {
    proven(engine, done).await;
    let due = fixture.spell_for_app("now()", "0", "0");
    for Mutation { side, table, sql, says } in mutations {
        let place = match side {
            Side::Store => &fixture.store,
            Side::App => &fixture.app,
        };
        // MariaDB reserves some of the column names.
        let (cursor, read) = match (side, fixture.spell_for_app("", "", "maria")) {
            (Side::App, "maria") => ("`cursor`", "`read`"),
            _ => ("cursor", "read"),
        };
        let sql = sql.replace("ID", &done.id.to_string()).replace("DUE", due);
        let sql = sql.replace("CURSOR", cursor).replace("READ", read);
        place.run(&format!("CREATE TABLE saved AS SELECT * FROM {table}")).await;
        place.run(&sql).await;
        let audit = engine.audit(done.id).await.unwrap();
        assert_ne!(audit.verdict, Verdict::Proven, "{sql}");
        let said = reasons(&audit);
        assert!(!said.is_empty() && said.contains(says), "{sql}\nshould say {says}, says\n{said}");
        place.run(&format!("DELETE FROM {table}")).await;
        place.run(&format!("INSERT INTO {table} SELECT * FROM saved")).await;
        place.run("DROP TABLE saved").await;
        proven(engine, done).await;
    }
}

pub(crate) async fn a_table_scan(fixture: EngineFixture) {
    visits(&fixture).await;
    let engine = fixture.engine(&jobs(ADD, "")).await;
    let done = run(&engine).await;
    let all = CHUNKS.iter().chain(&LEDGER).chain(&SOURCE);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
    for column in ["processed", "skipped", "dead", "conflicts", "items_total", "chunks_total"] {
        fixture.store.run(&format!("UPDATE windlass_jobs SET {column} = {column} + 1")).await;
        let audit = engine.audit(done.id).await.unwrap();
        assert_eq!(audit.verdict, Verdict::NotProven, "{column}");
        assert!(reasons(&audit).contains("the job's row has"), "{audit:?}");
        fixture.store.run(&format!("UPDATE windlass_jobs SET {column} = {column} - 1")).await;
    }
    proven(&engine, &done).await;
    // New rows with ascending keys count as drift and do not change the verdict.
    fixture.app.run("INSERT INTO visits (id) VALUES (100), (101)").await;
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.drift, Some(Drift { appeared: 2, disappeared: 0 }));
    assert!(audit.is_proven(), "{audit:#?}");
    // Without the source the audit neither proves nor contradicts.
    let audit = engine.audit_with(done.id, false).await.unwrap();
    assert_eq!((audit.verdict, audit.drift), (Verdict::CannotBeJudged, None));
    // The user's database is restored to a state before the job.
    fixture.app.run("UPDATE visits SET amount = 0").await;
    fixture.app.run("DELETE FROM windlass_ledger").await;
    assert_eq!(engine.audit(done.id).await.unwrap().verdict, Verdict::NotProven);
    fixture.app.run("DROP TABLE windlass_ledger").await;
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged);
    assert!(reasons(&audit).contains("the ledger could not be read"), "{audit:?}");
}

pub(crate) async fn a_filter(fixture: EngineFixture) {
    visits(&fixture).await;
    fixture.app.run("UPDATE visits SET year = 2025, county = 'south' WHERE id > 30").await;
    fixture.app.run("UPDATE visits SET note = 'x'").await;
    let filters = "source.filters = { years = \"year\", counties = \"county\" }";
    let engine = fixture.engine(&jobs(ADD, filters)).await;
    // As ranges, and as lists of keys if the index does not contain the key.
    for filter in [json!({"years": [2024, 2025]}), json!({"counties": ["north", "south"]})] {
        let request = asked(json!({"jobType": "JOB", "filter": filter}));
        let done = submitted(&engine, request).await;
        let inserted =
            app("visits", "INSERT INTO visits (id, year) VALUES (9, 2024)", "1 appeared");
        let left =
            app("visits", "UPDATE visits SET year = 1, county = 'x' WHERE id = 5", "1 disappeared");
        // Moves a row from the last chunk of its value to the first.
        let moved =
            app("visits", "UPDATE visits SET id = 9 WHERE id = 44", "1 appeared and 1 disappeared");
        let source = [&SOURCE[0], &moved, &inserted, &left];
        let all = CHUNKS.iter().chain(&LEDGER).chain(source);
        only_proven_unchanged(&fixture, &engine, &done, all).await;
    }
}

pub(crate) async fn ids(fixture: EngineFixture) {
    visits(&fixture).await;
    let engine = fixture.engine(&jobs(ADD, "")).await;
    let ids: Vec<i64> = (1..=20).filter(|id| id % 3 != 0).collect();
    let done = submitted(&engine, asked(json!({"jobType": "JOB", "ids": ids}))).await;
    assert_eq!(done.chunks.total, 2);
    let rekeyed = app("visits", "UPDATE visits SET id = 9 WHERE id = 5", "1 disappeared");
    let all = CHUNKS.iter().chain(&LEDGER).chain([&SOURCE[0], &rekeyed]);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
}

/// A handler that fails for visits without a note and emits a row for each of the others.
async fn emitting(fixture: &EngineFixture) -> Engine {
    visits(fixture).await;
    fixture.app.run("UPDATE visits SET note = 'x' WHERE id NOT IN (5, 8, 22)").await;
    let handler = async |visit: Visit, _| match visit.note {
        None => Err(ItemError::permanent("no note")),
        Some(_) => {
            let row = BTreeMap::from([("id".to_owned(), Value::Int(visit.id))]);
            Ok(Outcome::Done(Change { emit: vec![row], ..Change::default() }))
        }
    };
    let engine = fixture.builder(&jobs(HANDLER, "")).handler("work", handler);
    engine.connect().await.unwrap()
}

pub(crate) async fn dead_letters_and_emitted_rows(fixture: EngineFixture) {
    let engine = emitting(&fixture).await;
    let done = run(&engine).await;
    let more = [
        store(
            "windlass_dead_letters",
            "DELETE FROM windlass_dead_letters WHERE key = '[8]'",
            "dead letters",
        ),
        app(
            "windlass_deferred",
            "DELETE FROM windlass_deferred WHERE item_key = '[8]'",
            "dead items",
        ),
        app(
            "windlass_emitted",
            "DELETE FROM windlass_emitted WHERE item_key = '[7]'",
            "emitted rows",
        ),
    ];
    let all = CHUNKS.iter().chain(&LEDGER).chain(&SOURCE).chain(&more);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
}

pub(crate) async fn a_redrive(fixture: EngineFixture) {
    let engine = emitting(&fixture).await;
    let first = run(&engine).await;
    fixture.app.run("UPDATE visits SET note = 'mended'").await;
    let filter = DeadLetterFilter { job: Some(first.id), ..DeadLetterFilter::default() };
    let id: JobId = engine.redrive(&filter).await.unwrap()[0].job_id;
    let done = work(&engine, id).await;
    assert_eq!((done.items.processed, done.chunks.total), (3, 1));
    let more = [
        store(
            "windlass_dead_letters",
            "UPDATE windlass_dead_letters SET status = 'new' WHERE key = '[8]'",
            "dead letters are marked as reprocessed",
        ),
        app("visits", "DELETE FROM visits WHERE id = 5", "1 disappeared"),
    ];
    // The redrive has one chunk.
    let only = store(
        "windlass_chunks",
        "DELETE FROM windlass_chunks WHERE job_id = 'ID'",
        "the ledger has a row for chunk 0, which is not in the store",
    );
    let all = [&only, &LEDGER[0]].into_iter().chain(&more);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
    proven(&engine, &engine.job(first.id).await.unwrap()).await;

    // A database that lost the redrive's commits.
    fixture.app.run(&format!("DELETE FROM windlass_ledger WHERE job_id = '{id}'")).await;
    let audit = engine.audit(first.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::NotProven);
    assert_eq!(audit.findings, [format!("redrive {id}: the ledger has no row for chunk 0")]);
}

const PARTS: [Mutation; 2] = [
    store(
        "windlass_parts",
        "DELETE FROM windlass_parts WHERE chunk = 1",
        "the part of chunk 1 is missing",
    ),
    store(
        "windlass_parts",
        "DELETE FROM windlass_parts WHERE chunk = -1",
        "the merged result is missing",
    ),
];

/// Rows that change later affect what the audit proves only of chunks that were read at different instants.
const AT_ITS_OWN_INSTANT: &str = "source.consistency = \"chunk\"";

pub(crate) async fn a_map(fixture: EngineFixture) {
    visits(&fixture).await;
    fixture.app.run("CREATE TABLE totals (county text, n bigint)").await;
    let step = format!(
        "step.map = \"SELECT county, count(*) AS n FROM {{source}} WHERE {{chunk}} GROUP BY county\"\n\
         reduce = \"SELECT county, sum(n) AS n FROM parts GROUP BY county\"\n\
         load = {{ connection = \"app\", table = \"totals\", replace = [\"county\"] }}\n\
         report = {{ to = \"file:{}/report.csv\", page = false }}",
        fixture.folder.path().display()
    );
    let engine = fixture.engine(&jobs(&step, AT_ITS_OWN_INSTANT)).await;
    let done = run(&engine).await;
    let altered = store(
        "windlass_parts",
        "UPDATE windlass_parts SET sha256 = 'x' WHERE chunk = 1",
        "the part of chunk 1 is damaged",
    );
    let loaded =
        app("windlass_ledger", "DELETE FROM windlass_ledger", "load of the result into totals");
    let all = CHUNKS.iter().chain(&PARTS).chain(&SOURCE).chain([&altered, &loaded]);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
    std::fs::remove_file(fixture.folder.path().join("report.csv")).unwrap();
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::NotProven);
    assert!(reasons(&audit).contains("report.csv is missing"), "{audit:?}");
}

pub(crate) async fn an_export(fixture: EngineFixture) {
    visits(&fixture).await;
    let out = fixture.folder.path().join("out");
    let step = format!(
        "step.export = {{ to = \"file:{}/{{job_id}}/\", format = \"jsonl\" }}",
        out.display()
    );
    let engine = fixture.engine(&jobs(&step, AT_ITS_OWN_INSTANT)).await;
    let done = run(&engine).await;
    let all = CHUNKS.iter().chain(&PARTS).chain(&SOURCE);
    only_proven_unchanged(&fixture, &engine, &done, all).await;
    let files = std::fs::read_dir(out.join(done.id.to_string())).unwrap();
    for file in files.map(|file| file.unwrap().path()) {
        let content = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let audit = engine.audit(done.id).await.unwrap();
        assert_eq!(audit.verdict, Verdict::NotProven, "{}", file.display());
        assert!(reasons(&audit).contains("is missing"), "{audit:?}");
        std::fs::write(&file, content).unwrap();
    }
    proven(&engine, &done).await;
}

/// A row moves from a chunk that is not worked yet to one that is, so the job never reads it.
pub(crate) async fn a_row_that_moves_behind_the_cursor(fixture: EngineFixture) {
    visits(&fixture).await;
    let handler = running(&fixture.app, 22, "UPDATE visits SET id = 9 WHERE id = 44");
    let engine = fixture.builder(&jobs(HANDLER, "")).handler("work", handler);
    let engine = engine.connect().await.unwrap();
    let id = submit(&engine).await;
    let worker = Working::start(&engine, "worker", 1);
    let done = ended(&engine, id).await;
    worker.stop().await;
    assert_eq!(fixture.int("SELECT amount FROM visits WHERE id = 9").await, 0, "it was missed");
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{audit:#?}");
    let said = reasons(&audit);
    assert!(said.contains("while the job ran: 0 appeared and 1 disappeared"), "{said}");
    assert_eq!(audit.drift, Some(Drift { appeared: 1, disappeared: 1 }));
}

/// Rows of another table are not items, however many a statement affects.
pub(crate) async fn a_statement_on_another_table(fixture: EngineFixture) {
    visits(&fixture).await;
    for _ in 0..3 {
        fixture.app.run("INSERT INTO log (visit) SELECT id FROM visits").await;
    }
    let step = "step.sql = \"UPDATE log SET what = 'x' WHERE visit IN \
                (SELECT id FROM visits WHERE {chunk})\"";
    let engine = fixture.engine(&jobs(step, "")).await;
    let done = run(&engine).await;
    assert_eq!((done.items.total, done.items.processed, done.items.skipped), (30, 30, 0));
    let audit = engine.audit(done.id).await.unwrap();
    assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{audit:#?}");
    assert!(reasons(&audit).contains("another table than the source"), "{audit:?}");
}

/// Rows that leave the source because they were processed are not drift. A row that comes back is.
pub(crate) async fn rows_that_leave_as_they_are_processed(fixture: EngineFixture) {
    for (step, condition) in [
        ("UPDATE visits SET note = 'done' WHERE {chunk}", "source.where = \"note IS NULL\""),
        ("DELETE FROM visits WHERE {chunk}", ""),
    ] {
        let fixture = fixture.another().await;
        visits(&fixture).await;
        let engine = fixture.engine(&jobs(&format!("step.sql = \"{step}\""), condition)).await;
        let done = run(&engine).await;
        proven(&engine, &done).await;
        let audit = engine.audit(done.id).await.unwrap();
        assert_eq!((audit.left, audit.drift), (30, Some(Drift::default())), "{step}");
        fixture.app.run("INSERT INTO visits (id) VALUES (9)").await;
        let audit = engine.audit(done.id).await.unwrap();
        assert_eq!(audit.verdict, Verdict::CannotBeJudged, "{step}");
    }
}

on_each!(
    a_table_scan,
    a_filter,
    ids,
    dead_letters_and_emitted_rows,
    a_redrive,
    a_map,
    an_export,
    a_row_that_moves_behind_the_cursor,
    a_statement_on_another_table,
    rows_that_leave_as_they_are_processed,
);
