//! A process that is killed between its write and the deletion of the message.

use crate::fixture::CandidatesFixture;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use windlass_testkit::aws::Moment;

#[tokio::test(flavor = "multi_thread")]
async fn a_record_written_before_the_kill_is_not_written_again() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(40).await;
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    // The write succeeds, but neither the process nor the queue learns of it.
    for after in [3, 11, 5] {
        let process = fixture.process.clone();
        fixture.gateway.at("UpdateItem", Moment::After, after, move || {
            for id in process.at_work() {
                let id = Pid::from_raw(i32::try_from(id).unwrap());
                kill(id, Signal::SIGKILL).unwrap();
            }
        });
    }
    fixture.drain().await;
    for (id, record) in fixture.all_candidates().await {
        assert_eq!(record.version(), 2, "{id}");
    }
    assert_eq!(fixture.bodies(&fixture.dead).await.len(), 0);
}
