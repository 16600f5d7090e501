//! A cancelled job leaves no mark, whether its workers are running or not.

use crate::common::eventually;
use crate::visits::fixture::VisitsFixture;

/// Committed changes stay, other rows are unchanged, and no mark is left. Another job does the rest, and nothing
/// twice.
async fn another_job_does_the_rest(fixture: &VisitsFixture) {
    assert_eq!(fixture.marked().await, 0);
    assert!(fixture.due().await > 0, "the job was completed");
    let again = fixture.submit().await;
    fixture.complete(&again).await;
    fixture.updated_once().await;
    fixture.sandbox.prove(&again).await;
}

#[tokio::test]
async fn cancelled_while_a_worker_works_on_it() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    assert!(fixture.marked().await > 0);
    let cancel = fixture.sandbox.spawn(&format!("cancel {id}"));
    // The cancellation waits for the current commit, and comes next.
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("the cancellation waits", async || fixture.number(waiting).await > 0).await;
    fixture.open().await;
    cancel.wait().await.ok();
    assert_eq!(worker.wait().await.code, Some(3));
    another_job_does_the_rest(&fixture).await;
}

#[tokio::test]
async fn cancelled_after_its_worker_was_killed() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;
    assert!(fixture.marked().await > 0, "a killed worker clears no marks");
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    another_job_does_the_rest(&fixture).await;
}
