//! A night that is cancelled leaves no output, whether its workers live, sleep or are dead.

use crate::common::eventually;
use crate::world::{DATE, World};
use std::path::PathBuf;
use windlass_testkit::Running;

/// An export of which some parts are there, and its worker.
async fn begun(world: &World) -> (String, Running) {
    let id = world.submit("TRANSACTIONS_EXPORT").await;
    world.place.run("throughput TRANSACTIONS_EXPORT --rate 2000").await.ok();
    let worker = world.place.spawn(&format!("worker --job {id}"));
    let folder = folder(world, &id);
    eventually("parts are there", async || {
        std::fs::read_dir(&folder).is_ok_and(|entries| entries.count() > 2)
    })
    .await;
    (id, worker)
}

fn folder(world: &World, id: &str) -> PathBuf {
    world.place.path(&format!("out/transactions/{DATE}/{id}"))
}

fn is_empty(world: &World, id: &str) -> bool {
    std::fs::read_dir(folder(world, id)).map_or(true, |mut entries| entries.next().is_none())
}

#[tokio::test]
async fn while_a_worker_is_at_it() {
    let world = World::in_a_folder().await;
    let (id, worker) = begun(&world).await;
    world.place.run(&format!("cancel {id}")).await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    assert!(is_empty(&world, &id), "{:?}", std::fs::read_dir(folder(&world, &id)).unwrap().next());
}

#[tokio::test]
async fn after_its_worker_was_killed() {
    let world = World::in_a_folder().await;
    let (id, worker) = begun(&world).await;
    worker.kill9();
    worker.wait().await;
    world.place.run(&format!("cancel {id}")).await.ok();
    assert!(is_empty(&world, &id), "{:?}", std::fs::read_dir(folder(&world, &id)).unwrap().next());
}

#[tokio::test]
async fn while_its_worker_sleeps_and_wakes_up_too_late() {
    let world = World::in_a_folder().await;
    let (id, worker) = begun(&world).await;
    worker.stop();
    world.place.run(&format!("cancel {id}")).await.ok();
    worker.cont();
    assert_eq!(worker.wait().await.code, Some(3));
    assert!(is_empty(&world, &id), "{:?}", std::fs::read_dir(folder(&world, &id)).unwrap().next());
}

#[tokio::test]
async fn a_report_that_is_cancelled_loads_nothing() {
    let world = World::in_a_folder().await;
    let id = world.submit("DAILY_REPORT").await;
    world.place.run("throughput DAILY_REPORT --rate 2000").await.ok();
    let worker = world.place.spawn(&format!("worker --job {id}"));
    let some = |job: &serde_json::Value| job["chunks"]["completed"].as_i64() >= Some(3);
    world.place.until(&id, "some chunks are done", some).await;
    world.place.run(&format!("cancel {id}")).await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    assert!(world.loaded().await.is_empty());
    assert!(!world.place.path("out/reports").exists());
    let parts = "SELECT count(*) FROM windlass_parts";
    assert_eq!(world.warehouse.one::<i64>(parts).await, 0);
}
