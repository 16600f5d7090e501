//! A job cancelled in the middle of its merge: nothing of it comes later, and no output stays.

use crate::common::{Data, config, said};
use crate::world::{JOBS, REPORT, World};
use windlass_testkit::{Gate, Moto, Running};

/// Cancels a job while its worker sleeps, which then wakes up.
async fn cancel_asleep(world: &World, id: &str, gate: Gate, worker: Running) {
    worker.stop();
    world.place.run(&format!("cancel {id}")).await.ok();
    gate.open();
    worker.cont();
    assert_eq!(worker.wait().await.code, Some(3));
    assert_eq!(world.place.status(id).await, "CANCELLED");
}

#[tokio::test]
async fn nothing_is_loaded_afterwards() {
    for data in [Data::postgres().await, Data::mariadb().await] {
        let world = World::with(data).await;
        let id = world.submit("TOTALS").await;
        let (gate, worker) = world.held_at(&id, "UPDATE windlass_ledger SET").await;
        cancel_asleep(&world, &id, gate, worker).await;
        world.nothing_is_loaded().await;
        assert_eq!(world.names(), [""; 0]);
    }
}

/// A load that cannot be fenced may still commit. Until it is fenced the job is not CANCELLED, says why,
/// and its dependents wait.
#[tokio::test]
async fn it_is_not_cancelled_before_its_load_is_fenced() {
    for (data, down) in [
        (Data::postgres().await, "postgres://127.0.0.1:1/none"),
        (Data::mariadb().await, "mysql://127.0.0.1:1/none"),
    ] {
        let world = World::with(data).await;
        let id = world.submit("TOTALS").await;
        let (gate, worker) = world.held_at(&id, "UPDATE windlass_ledger SET").await;
        worker.stop();
        let after = format!("PLAIN --after {id} --on-failed run");
        let child = world.place.submit(&after).await;
        world.place.write("down.toml", &config(&world.data.store_url(), down, JOBS));
        let asked = world.place.run(&format!("cancel {id} --config down.toml")).await;
        let told = said(&asked);
        asked.ok();
        assert!(told.contains("PROCESSING") && told.contains("being cancelled"), "{told}");
        let job = world.place.job(&id).await;
        assert_eq!(
            (job["status"].as_str(), job["finishedAt"].as_str()),
            (Some("PROCESSING"), None)
        );
        let waits = world.place.job(&child).await["error"].to_string();
        assert!(waits.contains("waits for 1 job"), "{waits}");

        cancel_asleep(&world, &id, gate, worker).await;
        world.nothing_is_loaded().await;
        let waits = world.place.job(&child).await["error"].to_string();
        assert!(!waits.contains("waits for"), "its dependents are told: {waits}");
    }
}

#[tokio::test]
async fn nothing_is_reported_afterwards() {
    for data in [Data::postgres().await, Data::mariadb().await] {
        let world = World::with(data).await;
        let id = world.submit("REPORT").await;
        let (gate, worker) = world.held_at(&id, "FROM parts GROUP").await;
        cancel_asleep(&world, &id, gate, worker).await;
        assert_eq!(world.names(), [""; 0]);
    }
}

/// The report was there before, and may have replaced another; the page was not.
#[tokio::test]
async fn no_page_is_written_afterwards() {
    let world = World::with(Data::postgres().await).await;
    let id = world.submit("REPORT").await;
    let (gate, worker) = world.held_at_store(&id, "took / 1000 * 1000").await;
    cancel_asleep(&world, &id, gate, worker).await;
    assert_eq!(world.names(), [REPORT]);
}

/// A manifest that was on its way lists parts that are gone, and goes too.
#[tokio::test]
async fn a_manifest_that_comes_afterwards_does_not_stay() {
    let world = World::in_a_bucket().await;
    let id = world.submit("PARTS").await;
    let put = format!("PUT /windlass/{id}/manifest.json");
    let (gate, worker) = world.held_at_request(&id, &put).await;
    cancel_asleep(&world, &id, gate, worker).await;
    assert_eq!(world.names(), [""; 0]);
}

/// It looks for its parts only now, and there are none any more.
#[tokio::test]
async fn a_manifest_of_nothing_is_not_written() {
    let world = World::with(Data::postgres().await).await;
    let id = world.submit("PARTS").await;
    let (gate, worker) = world.held_at_store(&id, "FROM windlass_parts").await;
    assert_eq!(world.names().len(), 10);
    cancel_asleep(&world, &id, gate, worker).await;
    assert_eq!(world.names(), [""; 0]);
}

/// Its merger died after that, while it removed what others had left.
#[tokio::test]
async fn a_manifest_that_is_there_already_goes_with_its_parts() {
    let world = World::in_a_bucket().await;
    let id = world.submit("PARTS").await;
    let orphan = format!("/{}/{id}/part-000000-99-0000000000000007.csv", Moto::BUCKET);
    assert!(world.moto().ask("PUT", &orphan, "late").contains(" 200 "));
    let (_gate, worker) = world.held_at_request(&id, "POST /windlass?delete").await;
    worker.kill9();
    worker.wait().await;
    assert!(world.names().contains(&format!("{id}/manifest.json")));
    world.place.run(&format!("cancel {id}")).await.ok();
    assert_eq!(world.names(), [""; 0]);
}
