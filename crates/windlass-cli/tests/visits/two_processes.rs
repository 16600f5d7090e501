//! Scenario 4: no row is updated by two, neither by two chunks nor by two processes, of which one
//! is killed and the other takes up what it held.

use crate::common::worked_by;
use crate::world::{CHUNKS, World};

#[tokio::test]
async fn two_processes_never_update_one_row() {
    let world = World::new().await;
    // At least one gate in every chunk: whichever chunks they take, both stop in the middle.
    world.close((0..CHUNKS * 2).map(|n| n * 250 + 1)).await;
    let id = world.submit().await;
    let worker = format!("worker --job {id} --concurrency 1");
    let first = world.sandbox.spawn(&worker);
    world.held_up(1).await;
    let second = world.sandbox.spawn(&worker);
    world.held_up(2).await;

    let left = world.sandbox.held_by(&id, first.id()).await;
    assert!(!left.is_empty());
    first.kill9();
    first.wait().await;
    world.open().await;

    let second_id = second.id();
    second.wait().await.ok();
    let chunks = world.sandbox.chunks(&id).await;
    for number in left {
        let chunk = &chunks[number as usize];
        assert!(worked_by(chunk, second_id), "{chunk:#}");
    }
    world.updated_once().await;
    world.sandbox.prove(&id).await;
}
