//! A process is killed in the middle of its merge. The next one completes it.

use crate::common::{Data, eventually};
use crate::merge::fixture::{MergeFixture, PAGE, REPORT};

/// Kills a worker that is blocked at this text, checks what is visible then, and lets another worker finish.
async fn killed_at(fixture: &MergeFixture, text: &str) {
    let id = fixture.submit("TOTALS").await;
    let (_gate, worker) = fixture.held_at(&id, text).await;
    worker.kill9();
    worker.wait().await;
    fixture.nothing_is_loaded().await;
    assert_eq!(fixture.names(), [""; 0]);
    fixture.expire().await;
    fixture.work(&id).await;
    fixture.totals_are_right().await;
    fixture.report_is_right().await;
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn killed_while_it_reduces() {
    for fixture in MergeFixture::on_servers().await {
        killed_at(&fixture, "FROM parts GROUP").await;
    }
}

#[tokio::test]
async fn killed_before_it_loads() {
    for fixture in MergeFixture::on_servers().await {
        killed_at(&fixture, "UPDATE windlass_ledger SET").await;
    }
}

/// In a transaction that never ends, the old rows are deleted and the new ones not yet inserted.
#[tokio::test]
async fn killed_while_it_loads() {
    killed_at(&MergeFixture::with(Data::postgres().await).await, "COPY ").await;
    killed_at(&MergeFixture::with(Data::mariadb().await).await, "INSERT INTO `totals`").await;
}

/// SQLite has one writer: while the test writes, the merge waits.
#[tokio::test]
async fn killed_while_it_waits_to_load_into_a_file() {
    let fixture = MergeFixture::with(Data::sqlite()).await;
    let id = fixture.submit("TOTALS").await;
    let file = fixture.data.folder().join("app.db");
    let mut writer = rusqlite::Connection::open(file).unwrap();
    let lock = writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let worker = fixture.sandbox.spawn(&format!("worker --job {id}"));
    eventually("it merges", async || fixture.is_merging()).await;
    worker.kill9();
    worker.wait().await;
    drop(lock);
    fixture.nothing_is_loaded().await;
    fixture.expire().await;
    fixture.work(&id).await;
    fixture.totals_are_right().await;
    fixture.report_is_right().await;
}

/// The load is committed by then, and is not repeated.
#[tokio::test]
async fn killed_while_it_writes_the_report() {
    let fixture = MergeFixture::in_a_bucket().await;
    let id = fixture.submit("TOTALS").await;
    let (_gate, worker) = fixture.held_at_request(&id, "PUT /windlass/totals.csv").await;
    worker.kill9();
    worker.wait().await;
    assert_eq!(fixture.names(), [""; 0]);
    fixture.totals_are_right().await;
    fixture.move_totals().await;
    fixture.expire().await;
    fixture.work(&id).await;
    assert_eq!(fixture.names(), [REPORT, PAGE]);
    fixture.report_is_right().await;
    fixture.page_is_of(&id).await;
    fixture.loaded_once().await;
}

#[tokio::test]
async fn killed_while_it_writes_the_manifest() {
    let (fixture, id, _gate, worker) = MergeFixture::held_at_manifest().await;
    worker.kill9();
    worker.wait().await;
    fixture.has_only_parts();
    fixture.expire().await;
    fixture.work(&id).await;
    fixture.parts_are_right(&id).await;
    fixture.sandbox.prove(&id).await;
}
