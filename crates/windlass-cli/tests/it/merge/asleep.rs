//! A process that sleeps in the middle of its merge until others have ended it: awake, it changes
//! nothing any more.

use crate::common::Data;
use crate::merge::fixture::{MergeFixture, REPORT};
use windlass_testkit::{Gate, Running};

/// Puts a worker to sleep and lets another one end its job.
async fn sleep_over(fixture: &MergeFixture, id: &str, worker: &Running) {
    worker.stop();
    fixture.expire().await;
    fixture.work(id).await;
}

/// Wakes it up. What it had sent before arrives only now.
async fn wake(gate: Gate, worker: Running) {
    gate.open();
    worker.cont();
    worker.wait().await.ok();
}

/// It has fenced and was told that the merge is its own: only the ledger stands in its way.
#[tokio::test]
async fn its_load_comes_too_late() {
    for data in [Data::postgres().await, Data::mariadb().await] {
        let fixture = MergeFixture::with(data).await;
        let id = fixture.submit("TOTALS").await;
        let (gate, worker) = fixture.held_at(&id, "UPDATE windlass_ledger SET").await;
        fixture.nothing_is_loaded().await;
        sleep_over(&fixture, &id, &worker).await;
        fixture.totals_are_right().await;
        // A second load would be seen.
        fixture.data.run("UPDATE totals SET day = 'tuesday' WHERE day = 'monday'").await;
        wake(gate, worker).await;
        let again = "SELECT count(*) FROM totals WHERE day = 'monday'";
        assert_eq!(fixture.data.number(again).await, 0, "loaded twice");
        fixture.report_is_right().await;
        fixture.sandbox.prove(&id).await;
    }
}

/// It sleeps in the middle of its load, whose transaction the database ends after a while.
#[tokio::test]
async fn its_load_is_half_done() {
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
        fixture.data.run("UPDATE totals SET day = 'tuesday' WHERE day = 'monday'").await;
        wake(gate, worker).await;
        let again = "SELECT count(*) FROM totals WHERE day = 'monday'";
        assert_eq!(fixture.data.number(again).await, 0, "loaded twice");
        fixture.report_is_right().await;
    }
}

/// A newer job has written its report to the same place meanwhile.
#[tokio::test]
async fn its_report_does_not_replace_a_newer_one() {
    for data in [Data::postgres().await, Data::mariadb().await] {
        let fixture = MergeFixture::with(data).await;
        let id = fixture.submit("REPORT").await;
        let (gate, worker) = fixture.held_at(&id, "FROM parts GROUP").await;
        sleep_over(&fixture, &id, &worker).await;
        fixture.report_is_right().await;
        fixture.change_amounts().await;
        let newer = fixture.submit("REPORT").await;
        fixture.work(&newer).await;
        fixture.report_is_right().await;
        wake(gate, worker).await;
        fixture.report_is_right().await;
    }
}

/// It had written its report, and was about to write the page beside it.
#[tokio::test]
async fn its_page_does_not_replace_a_newer_one() {
    let fixture = MergeFixture::with(Data::postgres().await).await;
    let id = fixture.submit("REPORT").await;
    let (gate, worker) = fixture.held_at_store(&id, "took / 1000 * 1000").await;
    assert_eq!(fixture.names(), [REPORT]);
    sleep_over(&fixture, &id, &worker).await;
    fixture.page_is_of(&id).await;
    let newer = fixture.submit("REPORT").await;
    fixture.work(&newer).await;
    fixture.page_is_of(&newer).await;
    wake(gate, worker).await;
    fixture.page_is_of(&newer).await;
}

/// What is on its way cannot be called back, and is the same to the letter.
#[tokio::test]
async fn its_manifest_and_report_are_those_that_are_there() {
    let fixture = MergeFixture::in_a_bucket().await;
    let parts = fixture.submit("PARTS").await;
    let manifest = format!("{parts}/manifest.json");
    let put = format!("PUT /windlass/{manifest}");
    let (gate, worker) = fixture.held_at_request(&parts, &put).await;
    sleep_over(&fixture, &parts, &worker).await;
    fixture.parts_are_right(&parts).await;
    let before = fixture.text(&manifest).await;
    wake(gate, worker).await;
    fixture.parts_are_right(&parts).await;
    assert_eq!(fixture.text(&manifest).await, before);

    let report = fixture.submit("REPORT").await;
    let (gate, worker) = fixture.held_at_request(&report, "PUT /windlass/totals.csv").await;
    sleep_over(&fixture, &report, &worker).await;
    let before = fixture.text("totals.csv").await;
    wake(gate, worker).await;
    fixture.report_is_right().await;
    assert_eq!(fixture.text("totals.csv").await, before);
}
