//! A job that is cancelled leaves no mark, whether its workers live or not.

use crate::common::eventually;
use crate::world::World;

/// What was committed stays and what was not is untouched, without a mark; another job does the
/// rest and nothing again.
async fn another_job_does_the_rest(world: &World) {
    assert_eq!(world.marked().await, 0);
    assert!(world.due().await > 0, "the job was over");
    let again = world.submit().await;
    world.complete(&again).await;
    world.updated_once().await;
    world.sandbox.prove(&again).await;
}

#[tokio::test]
async fn cancelled_while_a_worker_is_at_it() {
    let world = World::new().await;
    let (id, worker) = world.half_way().await;
    assert!(world.marked().await > 0);
    let cancel = world.sandbox.spawn(&format!("cancel {id}"));
    // It waits behind the commit that is on its way, and is next.
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("the cancellation waits", async || world.number(waiting).await > 0).await;
    world.open().await;
    cancel.wait().await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    another_job_does_the_rest(&world).await;
}

#[tokio::test]
async fn cancelled_after_its_worker_was_killed() {
    let world = World::new().await;
    let (id, worker) = world.half_way().await;
    worker.kill9();
    worker.wait().await;
    world.open().await;
    assert!(world.marked().await > 0, "who is killed clears nothing");
    world.sandbox.run(&format!("cancel {id}")).await.ok();
    another_job_does_the_rest(&world).await;
}
