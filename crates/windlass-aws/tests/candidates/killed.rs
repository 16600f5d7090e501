//! A process that dies between its write and the deletion of the message.

use crate::world::World;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use windlass_testkit::aws::Moment;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_not_written_again() {
    let world = World::new().await;
    world.candidates(40).await;
    world.load(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    // The write is done, and nobody learns of it: neither the process nor the queue.
    for after in [3, 11, 5] {
        let process = world.process.clone();
        world.gateway.at("UpdateItem", Moment::After, after, move || {
            for id in process.at_work() {
                let id = Pid::from_raw(i32::try_from(id).unwrap());
                kill(id, Signal::SIGKILL).unwrap();
            }
        });
    }
    world.drain().await;
    for (id, record) in world.all_candidates().await {
        assert_eq!(record.version(), 2, "{id}");
    }
    assert_eq!(world.bodies(&world.dead).await.len(), 0);
}
