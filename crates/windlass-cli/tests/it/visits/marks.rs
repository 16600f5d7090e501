//! Mark, then update: the rows of a running chunk carry the mark in the user's own column.

use crate::common::eventually;
use crate::visits::fixture::VisitsFixture;

#[tokio::test]
async fn rows_of_a_running_chunk_are_marked_until_their_commit() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    // Two commits of the chunk are done; all that is left of it is marked, and nothing else.
    let first = &fixture.sandbox.chunks(&id).await[0];
    let marked =
        format!("update_flag = 1 AND updated_date IS NULL AND {}", VisitsFixture::within(first));
    let marked = fixture.number(&format!("SELECT count(*) FROM visits WHERE {marked}")).await;
    assert!((200..500).contains(&marked), "{marked} rows are marked");
    assert_eq!((fixture.marked().await, fixture.due().await), (marked, marked));
    fixture.open().await;
    worker.wait().await.ok();
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_worker_that_is_asked_to_leave_takes_its_marks_along() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    assert!(fixture.marked().await > 0);
    worker.term();
    says_goodbye(&fixture).await;
    fixture.open().await;
    worker.wait().await;
    assert!(fixture.due().await > 0, "the job was over");
    assert_eq!(fixture.marked().await, 0);
    fixture.complete(&id).await;
    fixture.updated_once().await;
}

#[tokio::test]
async fn a_job_that_is_paused_leaves_no_mark_and_goes_on_where_it_was() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    assert!(fixture.marked().await > 0);
    fixture.sandbox.run(&format!("pause {id}")).await.ok();
    says_goodbye(&fixture).await;
    fixture.open().await;
    assert_eq!(worker.wait().await.code, Some(4));
    assert!(fixture.due().await > 0, "the job was over");
    assert_eq!(fixture.marked().await, 0);
    fixture.sandbox.run(&format!("resume {id}")).await.ok();
    fixture.complete(&id).await;
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}

/// Waits until the worker knows that it is to leave: then it is not listed any more, though a
/// commit of its is still on the way.
async fn says_goodbye(fixture: &VisitsFixture) {
    eventually("the worker has said goodbye", async || {
        fixture.sandbox.json("workers").await == serde_json::json!([])
    })
    .await;
}
