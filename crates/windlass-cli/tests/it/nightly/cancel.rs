//! A cancelled job leaves no output, whether its workers are running, frozen or dead.

use crate::common::eventually;
use crate::nightly::fixture::{DATE, NightlyFixture};
use std::path::PathBuf;
use windlass_testkit::Running;

/// An export with some parts written, and its worker.
async fn begun() -> (NightlyFixture, String, Running) {
    let fixture = NightlyFixture::in_a_folder().await;
    let id = fixture.submit("TRANSACTIONS_EXPORT").await;
    fixture.sandbox.run("throughput TRANSACTIONS_EXPORT --rate 500").await.ok();
    let worker = fixture.sandbox.spawn(&format!("worker --job {id}"));
    let folder = folder(&fixture, &id);
    eventually("parts are written", async || {
        std::fs::read_dir(&folder).is_ok_and(|entries| entries.count() > 2)
    })
    .await;
    (fixture, id, worker)
}

fn folder(fixture: &NightlyFixture, id: &str) -> PathBuf {
    fixture.sandbox.path(&format!("out/transactions/{DATE}/{id}"))
}

/// Asserts that no part of a job is left.
#[track_caller]
fn is_empty(fixture: &NightlyFixture, id: &str) {
    let left = std::fs::read_dir(folder(fixture, id)).ok().and_then(|mut parts| parts.next());
    assert!(left.is_none(), "{left:?}");
}

#[tokio::test]
async fn cancelled_while_a_worker_works_on_it() {
    let (fixture, id, worker) = begun().await;
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    is_empty(&fixture, &id);
}

#[tokio::test]
async fn cancelled_after_its_worker_was_killed() {
    let (fixture, id, worker) = begun().await;
    worker.kill9();
    worker.wait().await;
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    is_empty(&fixture, &id);
}

#[tokio::test]
async fn cancelled_while_its_worker_is_frozen() {
    let (fixture, id, worker) = begun().await;
    worker.stop();
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    worker.cont();
    assert_eq!(worker.wait().await.code, Some(3));
    is_empty(&fixture, &id);
}

#[tokio::test]
async fn a_cancelled_report_loads_nothing() {
    let fixture = NightlyFixture::in_a_folder().await;
    let id = fixture.submit("DAILY_REPORT").await;
    fixture.sandbox.run("throughput DAILY_REPORT --rate 500").await.ok();
    let worker = fixture.sandbox.spawn(&format!("worker --job {id}"));
    let some = |job: &serde_json::Value| job["chunks"]["completed"].as_i64() >= Some(3);
    fixture.sandbox.until(&id, "some chunks are completed", some).await;
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    assert!(fixture.loaded().await.is_empty());
    assert!(!fixture.sandbox.path("out/reports").exists());
    let parts = "SELECT count(*) FROM windlass_parts";
    assert_eq!(fixture.warehouse.one::<i64>(parts).await, 0);
}
