//! A job is cancelled in the middle of its merge. Nothing is written afterwards, and no output stays.

use crate::common::{Data, config, said};
use crate::merge::fixture::{JOBS, MergeFixture};
use windlass_testkit::{Gate, Moto, Running};

/// Cancels a job while its worker is frozen, and then continues the worker.
async fn cancel_while_frozen(fixture: &MergeFixture, id: &str, gate: Gate, worker: Running) {
    worker.stop();
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    gate.open();
    worker.cont();
    assert_eq!(worker.wait().await.code, Some(3));
    assert_eq!(fixture.sandbox.status(id).await, "CANCELLED");
}

#[tokio::test]
async fn nothing_is_loaded_after_a_cancellation() {
    for fixture in MergeFixture::on_servers().await {
        let id = fixture.submit("TOTALS").await;
        let (gate, worker) = fixture.held_at(&id, "UPDATE windlass_ledger SET").await;
        cancel_while_frozen(&fixture, &id, gate, worker).await;
        fixture.nothing_is_loaded().await;
        assert_eq!(fixture.names(), [""; 0]);
    }
}

/// A load that cannot be fenced may still commit. Until it is fenced, the job is not CANCELLED, shows the reason, and
/// its dependents wait.
#[tokio::test]
async fn a_job_is_not_cancelled_before_its_load_is_fenced() {
    for (data, down) in [
        (Data::postgres().await, "postgres://127.0.0.1:1/none"),
        (Data::mariadb().await, "mysql://127.0.0.1:1/none"),
    ] {
        let fixture = MergeFixture::with(data).await;
        let id = fixture.submit("TOTALS").await;
        let (gate, worker) = fixture.held_at(&id, "UPDATE windlass_ledger SET").await;
        worker.stop();
        let after = format!("PLAIN --after {id} --on-failed run");
        let child = fixture.sandbox.submit(&after).await;
        fixture.sandbox.write("down.toml", &config(&fixture.data.store_url(), down, JOBS));
        let asked = fixture.sandbox.run(&format!("cancel {id} --config down.toml")).await;
        let told = said(&asked);
        asked.ok();
        assert!(told.contains("PROCESSING") && told.contains("being cancelled"), "{told}");
        let job = fixture.sandbox.job(&id).await;
        assert_eq!(
            (job["status"].as_str(), job["finishedAt"].as_str()),
            (Some("PROCESSING"), None)
        );
        let waits = fixture.sandbox.job(&child).await["error"].to_string();
        assert!(waits.contains("waits for 1 job"), "{waits}");

        cancel_while_frozen(&fixture, &id, gate, worker).await;
        fixture.nothing_is_loaded().await;
        let waits = fixture.sandbox.job(&child).await["error"].to_string();
        assert!(!waits.contains("waits for"), "its dependents show the reason: {waits}");
    }
}

#[tokio::test]
async fn no_report_is_written_after_a_cancellation() {
    for fixture in MergeFixture::on_servers().await {
        let id = fixture.submit("REPORT").await;
        let (gate, worker) = fixture.held_at(&id, "FROM parts GROUP").await;
        cancel_while_frozen(&fixture, &id, gate, worker).await;
        assert_eq!(fixture.names(), [""; 0]);
    }
}

/// The report was written before, and is deleted. The page was not written.
#[tokio::test]
async fn no_page_is_written_after_a_cancellation() {
    let fixture = MergeFixture::with(Data::postgres().await).await;
    let id = fixture.submit("REPORT").await;
    let (gate, worker) = fixture.held_at_store(&id, "took / 1000 * 1000").await;
    cancel_while_frozen(&fixture, &id, gate, worker).await;
    assert_eq!(fixture.names(), [""; 0]);
}

/// A manifest that was already sent lists deleted parts, and is deleted too.
#[tokio::test]
async fn a_manifest_written_after_a_cancellation_is_deleted() {
    let (fixture, id, gate, worker) = MergeFixture::held_at_manifest().await;
    cancel_while_frozen(&fixture, &id, gate, worker).await;
    assert_eq!(fixture.names(), [""; 0]);
}

/// The worker lists its parts only now, and there are none.
#[tokio::test]
async fn no_manifest_is_written_after_the_parts_are_deleted() {
    let fixture = MergeFixture::with(Data::postgres().await).await;
    let id = fixture.submit("PARTS").await;
    let (gate, worker) = fixture.held_at_store(&id, "FROM windlass_parts").await;
    assert_eq!(fixture.names().len(), 10);
    cancel_while_frozen(&fixture, &id, gate, worker).await;
    assert_eq!(fixture.names(), [""; 0]);
}

/// The worker died after that, while it deleted orphaned files.
#[tokio::test]
async fn an_existing_manifest_is_deleted_with_its_parts() {
    let fixture = MergeFixture::in_a_bucket().await;
    let id = fixture.submit("PARTS").await;
    let orphan = format!("/{}/{id}/part-000000-99-0000000000000007.csv", Moto::BUCKET);
    assert!(fixture.moto().ask("PUT", &orphan, "late").contains(" 200 "));
    let (_gate, worker) = fixture.held_at_request(&id, "POST /windlass?delete").await;
    worker.kill9();
    worker.wait().await;
    assert!(fixture.names().contains(&format!("{id}/manifest.json")));
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(fixture.names(), [""; 0]);
}
