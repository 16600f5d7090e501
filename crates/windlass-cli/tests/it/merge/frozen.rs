//! A process is frozen in the middle of its merge until another has finished it. When it continues, it changes
//! nothing.

use crate::common::Data;
use crate::merge::fixture::{MergeFixture, REPORT};
use windlass_testkit::{Gate, Running};

/// Freezes a worker and lets another one end its job.
async fn freeze_until_ended(fixture: &MergeFixture, id: &str, worker: &Running) {
    worker.stop();
    fixture.expire().await;
    fixture.work(id).await;
}

/// Continues the frozen worker. What it had sent before arrives only now.
async fn wake(gate: Gate, worker: Running) {
    gate.open();
    worker.cont();
    worker.wait().await.ok();
}

/// The frozen worker had fenced and confirmed the merge, so only the ledger can refuse its load.
#[tokio::test]
async fn a_late_load_is_refused() {
    for fixture in MergeFixture::on_servers().await {
        let id = fixture.submit("TOTALS").await;
        let (gate, worker) = fixture.held_at(&id, "UPDATE windlass_ledger SET").await;
        fixture.nothing_is_loaded().await;
        freeze_until_ended(&fixture, &id, &worker).await;
        fixture.totals_are_right().await;
        fixture.move_totals().await;
        wake(gate, worker).await;
        fixture.loaded_once().await;
        fixture.report_is_right().await;
        fixture.sandbox.prove(&id).await;
    }
}

/// The worker is frozen in the middle of its load. The database ends the transaction after a while.
#[tokio::test]
async fn an_interrupted_load_is_rolled_back_and_done_by_another_worker() {
    for (data, text) in
        [(Data::postgres().await, "COPY "), (Data::mariadb().await, "INSERT INTO `totals`")]
    {
        let fixture = MergeFixture::with(data).await;
        let id = fixture.submit("TOTALS").await;
        let (gate, worker) = fixture.held_at(&id, text).await;
        worker.stop();
        fixture.expire().await;
        let next = fixture.sandbox.spawn(&format!("worker --job {id}"));
        fixture.end_idle_transactions().await;
        next.wait().await.ok();
        fixture.totals_are_right().await;
        fixture.move_totals().await;
        wake(gate, worker).await;
        fixture.loaded_once().await;
        fixture.report_is_right().await;
    }
}

/// A newer job has meanwhile written its report to the same destination.
#[tokio::test]
async fn a_late_report_does_not_replace_a_newer_one() {
    for fixture in MergeFixture::on_servers().await {
        let id = fixture.submit("REPORT").await;
        let (gate, worker) = fixture.held_at(&id, "FROM parts GROUP").await;
        freeze_until_ended(&fixture, &id, &worker).await;
        fixture.report_is_right().await;
        fixture.change_amounts().await;
        let newer = fixture.submit("REPORT").await;
        fixture.work(&newer).await;
        fixture.report_is_right().await;
        wake(gate, worker).await;
        fixture.report_is_right().await;
    }
}

/// The worker had written its report and was about to write the page beside it.
#[tokio::test]
async fn a_late_page_does_not_replace_a_newer_one() {
    let fixture = MergeFixture::with(Data::postgres().await).await;
    let id = fixture.submit("REPORT").await;
    let (gate, worker) = fixture.held_at_store(&id, "took / 1000 * 1000").await;
    assert_eq!(fixture.names(), [REPORT]);
    freeze_until_ended(&fixture, &id, &worker).await;
    fixture.page_is_of(&id).await;
    let newer = fixture.submit("REPORT").await;
    fixture.work(&newer).await;
    fixture.page_is_of(&newer).await;
    wake(gate, worker).await;
    fixture.page_is_of(&newer).await;
}

/// A request that is already sent cannot be stopped. It writes identical bytes.
#[tokio::test]
async fn a_late_manifest_and_report_are_identical_to_the_existing_ones() {
    let fixture = MergeFixture::in_a_bucket().await;
    let parts = fixture.submit("PARTS").await;
    let manifest = format!("{parts}/manifest.json");
    let put = format!("PUT /windlass/{manifest}");
    let (gate, worker) = fixture.held_at_request(&parts, &put).await;
    freeze_until_ended(&fixture, &parts, &worker).await;
    fixture.parts_are_right(&parts).await;
    let before = fixture.text(&manifest).await;
    wake(gate, worker).await;
    fixture.parts_are_right(&parts).await;
    assert_eq!(fixture.text(&manifest).await, before);

    let report = fixture.submit("REPORT").await;
    let (gate, worker) = fixture.held_at_request(&report, "PUT /windlass/totals.csv").await;
    freeze_until_ended(&fixture, &report, &worker).await;
    let before = fixture.text("totals.csv").await;
    wake(gate, worker).await;
    fixture.report_is_right().await;
    assert_eq!(fixture.text("totals.csv").await, before);
}
