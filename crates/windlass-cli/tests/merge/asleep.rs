//! A process that sleeps in the middle of its merge until others have ended it: awake, it changes
//! nothing any more.

use crate::common::Data;
use crate::world::{REPORT, World};
use windlass_testkit::{Gate, Running};

/// Puts a worker to sleep and lets another one end its job.
async fn sleep_over(world: &World, id: &str, worker: &Running) {
    worker.stop();
    world.expire().await;
    world.work(id).await;
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
        let world = World::with(data).await;
        let id = world.submit("TOTALS").await;
        let (gate, worker) = world.held_at(&id, "UPDATE windlass_ledger SET").await;
        world.nothing_is_loaded().await;
        sleep_over(&world, &id, &worker).await;
        world.totals_are_right().await;
        // A second load would be seen.
        world.data.run("UPDATE totals SET day = 'tuesday' WHERE day = 'monday'").await;
        wake(gate, worker).await;
        let again = "SELECT count(*) FROM totals WHERE day = 'monday'";
        assert_eq!(world.data.number(again).await, 0, "loaded twice");
        world.report_is_right().await;
        world.sandbox.prove(&id).await;
    }
}

/// It sleeps in the middle of its load, whose transaction the database ends after a while.
#[tokio::test]
async fn its_load_is_half_done() {
    for (data, text) in
        [(Data::postgres().await, "COPY "), (Data::mariadb().await, "INSERT INTO `totals`")]
    {
        let world = World::with(data).await;
        let id = world.submit("TOTALS").await;
        let (gate, worker) = world.held_at(&id, text).await;
        worker.stop();
        world.expire().await;
        let next = world.sandbox.spawn(&format!("worker --job {id}"));
        world.end_idle_transactions().await;
        next.wait().await.ok();
        world.totals_are_right().await;
        world.data.run("UPDATE totals SET day = 'tuesday' WHERE day = 'monday'").await;
        wake(gate, worker).await;
        let again = "SELECT count(*) FROM totals WHERE day = 'monday'";
        assert_eq!(world.data.number(again).await, 0, "loaded twice");
        world.report_is_right().await;
    }
}

/// A newer job has written its report to the same place meanwhile.
#[tokio::test]
async fn its_report_does_not_replace_a_newer_one() {
    for data in [Data::postgres().await, Data::mariadb().await] {
        let world = World::with(data).await;
        let id = world.submit("REPORT").await;
        let (gate, worker) = world.held_at(&id, "FROM parts GROUP").await;
        sleep_over(&world, &id, &worker).await;
        world.report_is_right().await;
        world.change_amounts().await;
        let newer = world.submit("REPORT").await;
        world.work(&newer).await;
        world.report_is_right().await;
        wake(gate, worker).await;
        world.report_is_right().await;
    }
}

/// It had written its report, and was about to write the page beside it.
#[tokio::test]
async fn its_page_does_not_replace_a_newer_one() {
    let world = World::with(Data::postgres().await).await;
    let id = world.submit("REPORT").await;
    let (gate, worker) = world.held_at_store(&id, "took / 1000 * 1000").await;
    assert_eq!(world.names(), [REPORT]);
    sleep_over(&world, &id, &worker).await;
    world.page_is_of(&id).await;
    let newer = world.submit("REPORT").await;
    world.work(&newer).await;
    world.page_is_of(&newer).await;
    wake(gate, worker).await;
    world.page_is_of(&newer).await;
}

/// What is on its way cannot be called back, and is the same to the letter.
#[tokio::test]
async fn its_manifest_and_report_are_those_that_are_there() {
    let world = World::in_a_bucket().await;
    let parts = world.submit("PARTS").await;
    let manifest = format!("{parts}/manifest.json");
    let put = format!("PUT /windlass/{manifest}");
    let (gate, worker) = world.held_at_request(&parts, &put).await;
    sleep_over(&world, &parts, &worker).await;
    world.parts_are_right(&parts).await;
    let before = world.text(&manifest).await;
    wake(gate, worker).await;
    world.parts_are_right(&parts).await;
    assert_eq!(world.text(&manifest).await, before);

    let report = world.submit("REPORT").await;
    let (gate, worker) = world.held_at_request(&report, "PUT /windlass/totals.csv").await;
    sleep_over(&world, &report, &worker).await;
    let before = world.text("totals.csv").await;
    wake(gate, worker).await;
    world.report_is_right().await;
    assert_eq!(world.text("totals.csv").await, before);
}
