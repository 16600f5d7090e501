//! Scenario 3: a run is killed with some chunks done, one begun and most of them not even that.

use crate::world::{ITEMS, THIRD_CHUNK, World};

/// Two chunks are done, the third has begun, the others have not, and nobody is left to do them.
async fn killed_in_the_third_chunk(world: &World) -> String {
    world.close([THIRD_CHUNK]).await;
    let id = world.submit().await;
    let worker = world.sandbox.spawn(&format!("worker --job {id} --concurrency 1"));
    world.held_up(1).await;
    world.chunks_done(&id, 2).await;
    worker.kill9();
    worker.wait().await;
    world.open().await;

    let done = world.number("SELECT count(*) FROM visits WHERE updated_date IS NOT NULL").await;
    assert!((2 * ITEMS..3 * ITEMS).contains(&done), "{done} rows are done");
    let marked = world.marked().await;
    assert!(marked >= ITEMS, "{marked} rows of the third chunk are marked, {done} are done");
    id
}

#[tokio::test]
async fn the_same_job_goes_on_by_itself() {
    let world = World::new().await;
    let id = killed_in_the_third_chunk(&world).await;
    world.complete(&id).await;
    world.updated_once().await;
    let chunks = world.sandbox.chunks(&id).await;
    assert!(chunks[..2].iter().all(|chunk| chunk["epoch"] == 1), "finished chunks were claimed");
    assert_eq!(chunks[2]["losses"], 1);
    world.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_new_job_does_what_is_left() {
    let world = World::new().await;
    let id = killed_in_the_third_chunk(&world).await;
    let left = world.due().await;
    world.sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(world.marked().await, 0, "no mark is stuck");
    let again = world.submit().await;
    world.complete(&again).await;
    assert_eq!(world.sandbox.job(&again).await["items"]["processed"], left);
    world.updated_once().await;
    world.sandbox.prove(&again).await;
}
