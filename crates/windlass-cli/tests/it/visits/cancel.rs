//! A job that is cancelled leaves no mark, whether its workers live or not.

use crate::common::eventually;
use crate::visits::fixture::VisitsFixture;

/// What was committed stays and what was not is untouched, without a mark; another job does the
/// rest and nothing again.
async fn another_job_does_the_rest(fixture: &VisitsFixture) {
    assert_eq!(fixture.marked().await, 0);
    assert!(fixture.due().await > 0, "the job was over");
    let again = fixture.submit().await;
    fixture.complete(&again).await;
    fixture.updated_once().await;
    fixture.sandbox.prove(&again).await;
}

#[tokio::test]
async fn cancelled_while_a_worker_is_at_it() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    assert!(fixture.marked().await > 0);
    let cancel = fixture.sandbox.spawn(&format!("cancel {id}"));
    // It waits behind the commit that is on its way, and is next.
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
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;
    assert!(fixture.marked().await > 0, "who is killed clears nothing");
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    another_job_does_the_rest(&fixture).await;
}
