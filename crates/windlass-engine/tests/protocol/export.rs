//! Exports: parts that are there whole, and a manifest that lists exactly those that count.

use crate::common::*;
use std::path::Path;
use windlass_core::{Job, JobStatus};
use windlass_engine::Engine;
use windlass_parts::Manifest;

fn exporting(world: &World, format: &str) -> String {
    let folder = world.folder.path().join("out");
    let step = format!(
        "step.export = {{ to = \"file:{}/\", format = \"{format}\", columns = [\"id\", \"amount\"] }}",
        folder.display()
    );
    job(&step, "chunk.items = 7")
}

async fn exported(engine: &Engine) -> Job {
    let id = engine.submit(request(), Engine::local_identity()).await.unwrap().id();
    work(engine, id).await
}

async fn manifest(world: &World) -> Option<Manifest> {
    let url = format!("file:{}/", world.folder.path().join("out").display());
    Manifest::read(&windlass_parts::Place::open(&url).unwrap()).await.unwrap()
}

/// The lines of all parts that a manifest lists, in order.
fn lines(world: &World, manifest: &Manifest) -> Vec<String> {
    let folder = world.folder.path().join("out");
    let read = |name: &str| std::fs::read_to_string(Path::new(&folder).join(name)).unwrap();
    manifest
        .parts
        .iter()
        .flat_map(|part| read(&part.name).lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

async fn every_record_is_in_exactly_one_part(world: World) {
    world.visits(100).await;
    let engine = world.engine(&exporting(&world, "jsonl")).await;
    let done = exported(&engine).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert_eq!(done.items.processed, 100);
    let manifest = manifest(&world).await.unwrap();
    assert_eq!((manifest.totals.rows, manifest.totals.parts), (100, done.chunks.total as u64));
    let ids: Vec<i64> = lines(&world, &manifest)
        .iter()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap()
        })
        .collect();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    assert!(engine.audit(done.id).await.unwrap().proven);
    // No ledger, no trace in the user's database.
    let tables = engine.connection("app").unwrap().tables().await.unwrap();
    assert!(tables.iter().all(|table| !table.starts_with("windlass")), "{tables:?}");
}

/// What a worker left that lost its chunk is removed, and what is not ours is left alone.
async fn orphans_are_removed(world: World) {
    world.visits(10).await;
    let engine = world.engine(&exporting(&world, "csv")).await;
    let folder = world.folder.path().join("out");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("part-000000-99.csv"), "late").unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    let done = exported(&engine).await;
    assert_eq!(done.status, JobStatus::Completed);
    assert!(!folder.join("part-000000-99.csv").exists());
    assert!(folder.join("notes.txt").exists());
    assert_eq!(manifest(&world).await.unwrap().totals.rows, 10);
}

async fn a_cancelled_export_leaves_nothing(world: World) {
    world.visits(50).await;
    let engine = world.engine(&exporting(&world, "parquet")).await;
    let id = engine.submit(request(), Engine::local_identity()).await.unwrap().id();
    load(&engine, id).await;
    // One chunk is worked, and then somebody cancels.
    let options = windlass_engine::Options { slots: 1, only: Some(id), ..Default::default() };
    let (worker, handle) = windlass_engine::Worker::new(engine.clone(), options);
    let working = tokio::spawn(worker.run());
    windlass_testkit::eventually("a part is there", PATIENCE, async || {
        !engine.store().parts(id, windlass_store::MERGED, 10).await.unwrap().is_empty()
    })
    .await;
    let cancelled = engine.cancel(id).await;
    handle.shutdown();
    working.await.unwrap();
    let status = engine.job(id).await.unwrap().status;
    if let Err(error) = cancelled {
        // It has ended meanwhile, which this test has nothing to say about.
        assert_eq!(status, JobStatus::Completed, "{error}");
    } else {
        assert_eq!(status, JobStatus::Cancelled);
        let folder = world.folder.path().join("out");
        let left: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(engine.store().parts(id, -2, 10).await.unwrap().is_empty());
    }
}

async fn a_place_that_refuses_fails_clearly_and_goes_on_when_mended(world: World) {
    world.visits(30).await;
    let engine = world.engine(&exporting(&world, "jsonl")).await;
    let folder = world.folder.path().join("out");
    // A file where the folder should be.
    std::fs::write(&folder, "in the way").unwrap();
    let failed = exported(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    let why = failed.error.unwrap();
    assert!(why.contains("out"), "{why}");
    std::fs::remove_file(&folder).unwrap();
    engine.retry(failed.id).await.unwrap();
    assert_eq!(work(&engine, failed.id).await.status, JobStatus::Completed);
    assert_eq!(manifest(&world).await.unwrap().totals.rows, 30);
}

async fn a_report_is_written_of_the_result(world: World) {
    world.visits(40).await;
    let to = world.folder.path().join("reports");
    let step = format!(
        "step.map = \"SELECT count(*) AS n, sum(id) AS total FROM {{source}} WHERE {{chunk}}\"\n\
         reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"\n\
         report = {{ to = \"file:{}/{{job_type}}.json\" }}\nchunk.items = 9",
        to.display()
    );
    let engine = world.engine(&job(&step, "")).await;
    let done = exported(&engine).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    let report = std::fs::read_to_string(to.join("JOB.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let number = |value: &serde_json::Value| value.to_string().trim_matches('"').to_owned();
    assert_eq!((number(&report[0]["n"]), number(&report[0]["total"])), ("40".into(), "820".into()));
}

on_each!(
    every_record_is_in_exactly_one_part,
    orphans_are_removed,
    a_cancelled_export_leaves_nothing,
    a_place_that_refuses_fails_clearly_and_goes_on_when_mended,
    a_report_is_written_of_the_result,
);
