//! Processes that are killed in the middle of a load, and connections that are lost.

use crate::common::Data;
use crate::redshift::fixture::WarehouseFixture;

/// The statements of a load, in order. Before COMMIT, none of them has an effect that others see.
const STATEMENTS: [&str; 8] = [
    "LOCK windlass_ledger",
    "CREATE TEMP TABLE",
    "COPY windlass_stage",
    "SELECT count(*) FROM windlass_stage",
    "DELETE FROM",
    "INSERT INTO \"",
    "UPDATE windlass_ledger SET cursor",
    "DROP TABLE windlass_stage",
];

#[tokio::test]
async fn a_report_is_loaded_once_when_its_process_is_killed() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 500).await;
    for text in STATEMENTS {
        let id = fixture.sandbox.submit("DAILY_REPORT --param day=monday").await;
        let (_gate, worker) = fixture.held_at(&id, text).await;
        worker.kill9();
        worker.wait().await;
        fixture.expire().await;
        fixture.sandbox.run(&format!("worker --job {id}")).await.ok();
        fixture.report_is_loaded().await;
        fixture.sandbox.prove(&id).await;
        let objects = fixture.objects(&id);
        assert_eq!(objects.len(), 2, "the files of the killed process are deleted: {objects:?}");
    }
}

#[tokio::test]
async fn an_export_is_loaded_once_when_its_process_is_killed() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 500).await;
    for text in ["COPY windlass_stage", "DROP TABLE windlass_stage"] {
        let id = fixture.sandbox.submit("ACCOUNTS --param day=monday").await;
        let (_gate, worker) = fixture.held_at(&id, text).await;
        worker.kill9();
        worker.wait().await;
        fixture.expire().await;
        fixture.sandbox.run(&format!("worker --job {id}")).await.ok();
        fixture.accounts_are_loaded().await;
        fixture.sandbox.prove(&id).await;
    }
}

/// The connection is lost after the commit, so the worker does not know whether it happened.
#[tokio::test]
async fn an_ambiguous_commit_is_loaded_once() {
    let fixture = WarehouseFixture::with(Data::sqlite(), 500).await;
    fixture.run("DAILY_REPORT").await;
    fixture.redshift.statements();
    fixture.run("DAILY_REPORT").await;
    let statements = fixture.redshift.statements();
    let commit = statements.iter().rposition(|sql| sql == "COMMIT").unwrap();
    fixture.warehouse.run("UPDATE daily_report SET n = -1").await;
    fixture.redshift.cut_after(commit);
    fixture.run("DAILY_REPORT").await;
    assert!(fixture.redshift.was_cut());
    fixture.report_is_loaded().await;
    let loads = fixture.redshift.statements();
    assert_eq!(loads.iter().filter(|sql| sql.starts_with("COPY")).count(), 1, "not loaded again");
}
