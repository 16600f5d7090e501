//! Exports: complete parts, and a manifest that lists exactly the parts that count.

use crate::protocol::common::*;
use std::path::{Path, PathBuf};
use windlass_core::{Job, JobId, JobStatus};
use windlass_engine::Engine;
use windlass_export::Manifest;
use windlass_store::{LeaseStatus, MERGED};

fn exporting(fixture: &EngineFixture, format: &str) -> String {
    let folder = fixture.folder.path().join("out");
    let step = format!(
        "step.export = {{ to = \"file:{}/{{job_id}}/\", format = \"{format}\", columns = [\"id\", \"amount\"] }}",
        folder.display()
    );
    job(&step, "chunk.items = 7")
}

async fn exported(engine: &Engine) -> Job {
    let id = engine.submit(request(), Engine::local_identity()).await.unwrap().id();
    work(engine, id).await
}

fn folder(fixture: &EngineFixture, job: JobId) -> PathBuf {
    fixture.folder.path().join("out").join(job.to_string())
}

async fn manifest(fixture: &EngineFixture, job: JobId) -> Option<Manifest> {
    let url = format!("file:{}/", folder(fixture, job).display());
    Manifest::read(&windlass_export::Destination::open(&url).unwrap()).await.unwrap()
}

/// The lines of all parts in a manifest, in order.
fn lines(folder: &Path, manifest: &Manifest) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    manifest
        .parts
        .iter()
        .flat_map(|part| read(&part.name).lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

pub(crate) async fn every_record_is_in_exactly_one_part(fixture: EngineFixture) {
    fixture.visits(100).await;
    let engine = fixture.engine(&exporting(&fixture, "jsonl")).await;
    let done = exported(&engine).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(done.items.processed, 100);
    let manifest = manifest(&fixture, done.id).await.unwrap();
    assert_eq!((manifest.totals.rows, manifest.totals.parts), (100, done.chunks.total as u64));
    let ids: Vec<i64> = lines(&folder(&fixture, done.id), &manifest)
        .iter()
        .map(|line| {
            let id = &serde_json::from_str::<serde_json::Value>(line).unwrap()["id"];
            // An exact decimal, such as a DynamoDB number, is written as text.
            id.as_i64().or_else(|| id.as_str()?.parse().ok()).unwrap()
        })
        .collect();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    assert!(engine.audit(done.id).await.unwrap().is_proven());
    // An export has no ledger in the user's database.
    let tables = engine.connection("app").unwrap().tables().await.unwrap();
    assert!(tables.iter().all(|table| !table.starts_with("windlass")), "{tables:?}");
}

/// Files of a worker that lost its chunk are deleted. Other files are kept.
pub(crate) async fn orphaned_part_files_are_deleted(fixture: EngineFixture) {
    fixture.visits(10).await;
    let engine = fixture.engine(&exporting(&fixture, "csv")).await;
    let id = engine.submit(request(), Engine::local_identity()).await.unwrap().id();
    let folder = folder(&fixture, id);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("part-000000-99-0000000000000007.csv"), "late").unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let done = work(&engine, id).await;
    assert_eq!(done.status, JobStatus::Completed);
    assert!(!folder.join("part-000000-99-0000000000000007.csv").exists());
    assert!(folder.join("notes.txt").exists());
    assert_eq!(manifest(&fixture, id).await.unwrap().totals.rows, 10);
}

/// Two chunks are completed and one is being worked when the job is cancelled.
pub(crate) async fn a_cancelled_export_leaves_nothing(fixture: EngineFixture) {
    fixture.visits(50).await;
    // A read snapshot would end with its planner, and all chunks would be planned again.
    let by_chunk = exporting(&fixture, "parquet") + "source.consistency = \"chunk\"\n";
    let engine = fixture.engine(&by_chunk).await;
    let id = engine.submit(request(), Engine::local_identity()).await.unwrap().id();
    plan_job(&engine, id).await;
    let held = engine.store().lease_chunks(&by_hand(id), 1).await.unwrap().remove(0);
    let options = windlass_engine::Options::default().with_slots(1).with_only(id);
    let (worker, handle) = windlass_engine::Worker::new(engine.clone(), options);
    let working = tokio::spawn(worker.run());
    windlass_testkit::eventually("the others are there", PATIENCE, async || {
        let parts = engine.store().parts(id, MERGED, 100).await.unwrap();
        parts.len() as i64 == engine.job(id).await.unwrap().chunks.total - 1
    })
    .await;
    // A file of a worker that lost its chunk.
    std::fs::write(folder(&fixture, id).join("part-000000-7-0000000000000007.parquet"), "late")
        .unwrap();
    engine.cancel(id).await.unwrap();
    handle.shutdown();
    working.await.unwrap();
    let left: Vec<_> = std::fs::read_dir(folder(&fixture, id)).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(engine.store().parts(id, MERGED - 1, 10).await.unwrap().is_empty());
    assert_eq!(engine.store().confirm(&[held.lease]).await.unwrap(), [LeaseStatus::Lost]);
}

pub(crate) async fn an_export_supports_dry_run_and_pruning(fixture: EngineFixture) {
    fixture.visits(20).await;
    let engine = fixture.engine(&exporting(&fixture, "jsonl")).await;
    let tried = engine.dry_run(request(), Engine::local_identity()).await.unwrap();
    assert_eq!((tried.records, tried.sample[0].outcome.as_str()), (20, "read"));
    let done = exported(&engine).await;
    let retention = windlass_core::Retention {
        chunks: std::time::Duration::ZERO,
        ..windlass_core::Retention::default()
    };
    assert_eq!(engine.prune(Some(&retention)).await.unwrap().emptied, 1);
    assert!(engine.store().parts(done.id, MERGED - 1, 10).await.unwrap().is_empty());
    assert!(manifest(&fixture, done.id).await.is_some(), "the exported files stay");
}

pub(crate) async fn a_destination_that_refuses_fails_the_job_and_a_retry_after_a_fix_completes_it(
    fixture: EngineFixture,
) {
    fixture.visits(30).await;
    let engine = fixture.engine(&exporting(&fixture, "jsonl")).await;
    let folder = fixture.folder.path().join("out");
    // A file in place of the folder.
    std::fs::write(&folder, "in the way").unwrap();
    let failed = exported(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let why = failed.error.unwrap();
    assert!(why.contains("out"), "{why}");
    std::fs::remove_file(&folder).unwrap();
    engine.retry(failed.id).await.unwrap();
    assert_eq!(work(&engine, failed.id).await.status, JobStatus::Completed);
    assert_eq!(manifest(&fixture, failed.id).await.unwrap().totals.rows, 30);
}

pub(crate) async fn the_result_is_written_to_the_report(fixture: EngineFixture) {
    fixture.visits(40).await;
    let to = fixture.folder.path().join("reports");
    let step = format!(
        "step.map = \"SELECT count(*) AS n, sum(id) AS total FROM {{source}} WHERE {{chunk}}\"\n\
         reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"\n\
         report = {{ to = \"file:{}/{{job_type}}.json\" }}\nchunk.items = 9",
        to.display()
    );
    let engine = fixture.engine(&job(&step, "")).await;
    let done = exported(&engine).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    let report = std::fs::read_to_string(to.join("JOB.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.to_string().trim_matches('"').to_owned();
    assert_eq!((number(&report[0]["n"]), number(&report[0]["total"])), ("40".into(), "820".into()));
}

/// A value that no column of the format can hold: an infinite timestamp, a text among numbers, a day that does not
/// exist.
async fn spoil(fixture: &EngineFixture, id: i64) {
    let sql = fixture.spell_for_app(
        "UPDATE visits SET seen = 'infinity' WHERE id = ",
        "UPDATE visits SET seen = 'much' WHERE id = ",
        "SET sql_mode = ''; UPDATE visits SET seen = '0000-00-00' WHERE id = ",
    );
    fixture.app.run(&format!("{sql}{id}")).await;
}

/// The others are exported. The dead letters can be redriven after a fix.
pub(crate) async fn a_record_that_the_format_cannot_represent_is_a_dead_letter(
    fixture: EngineFixture,
) {
    fixture.visits(50).await;
    let seen = fixture.spell_for_app("timestamptz", "integer", "date");
    fixture.app.run(&format!("ALTER TABLE visits ADD COLUMN seen {seen}")).await;
    for id in [3, 4, 50] {
        spoil(&fixture, id).await;
    }
    let jobs = exporting(&fixture, "parquet").replace("\"amount\"", "\"seen\"");
    let engine = fixture.engine(&jobs).await;
    let done = exported(&engine).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (47, 3));
    assert_eq!(manifest(&fixture, done.id).await.unwrap().totals.rows, 47);
    let found = letters(&engine, done.id).await;
    assert_eq!(keys(&found), [3, 4, 50]);
    for letter in &found {
        assert!(letter.error.contains("column `seen`"), "{}", letter.error);
        assert_eq!(letter.record["id"], letter.key, "the whole record");
    }

    fixture.app.run("UPDATE visits SET seen = NULL WHERE id IN (3, 50)").await;
    let redriven = engine.redrive(&Default::default()).await.unwrap();
    let again = work(&engine, redriven[0].job_id).await;
    assert_eq!((again.status, &again.error), (JobStatus::Completed, &None));
    assert_eq!((again.items.processed, again.items.dead), (2, 1));
    assert_eq!(manifest(&fixture, again.id).await.unwrap().totals.rows, 2);
    let statuses = letters(&engine, done.id).await;
    let statuses: Vec<_> = statuses.iter().map(|letter| letter.status).collect();
    use windlass_core::DeadLetterStatus::{New, Reprocessed};
    assert_eq!(statuses, [Reprocessed, New, Reprocessed]);
}

on_each!(
    a_record_that_the_format_cannot_represent_is_a_dead_letter,
    every_record_is_in_exactly_one_part,
    orphaned_part_files_are_deleted,
    a_cancelled_export_leaves_nothing,
    an_export_supports_dry_run_and_pruning,
    a_destination_that_refuses_fails_the_job_and_a_retry_after_a_fix_completes_it,
    the_result_is_written_to_the_report,
);
