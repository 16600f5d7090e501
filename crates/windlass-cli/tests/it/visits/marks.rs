//! Mark, then update: the rows of a leased chunk have the mark in the user's own column.

use crate::common::eventually;
use crate::visits::fixture::VisitsFixture;

#[tokio::test]
async fn rows_of_a_running_chunk_are_marked_until_their_commit() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    // Two commits of the chunk are done. The remaining rows are marked, and no others.
    let first = &fixture.sandbox.chunks(&id).await[0];
    let marked =
        format!("update_flag = 1 AND updated_date IS NULL AND {}", VisitsFixture::within(first));
    let marked = fixture.number(&format!("SELECT count(*) FROM maps WHERE {marked}")).await;
    assert!((200..500).contains(&marked), "{marked} rows are marked");
    assert_eq!((fixture.marked().await, fixture.due().await), (marked, marked));
    fixture.open().await;
    worker.wait().await.ok();
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_worker_that_shuts_down_clears_its_marks() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    assert!(fixture.marked().await > 0);
    worker.term();
    no_longer_listed(&fixture).await;
    fixture.open().await;
    worker.wait().await;
    assert!(fixture.due().await > 0, "the job was completed");
    assert_eq!(fixture.marked().await, 0);
    fixture.complete(&id).await;
    fixture.updated_once().await;
}

#[tokio::test]
async fn a_paused_job_has_no_marks_and_continues_where_it_was() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    assert!(fixture.marked().await > 0);
    fixture.sandbox.run(&format!("pause {id}")).await.ok();
    no_longer_listed(&fixture).await;
    fixture.open().await;
    assert_eq!(worker.wait().await.code, Some(4));
    assert!(fixture.due().await > 0, "the job was completed");
    assert_eq!(fixture.marked().await, 0);
    fixture.sandbox.run(&format!("resume {id}")).await.ok();
    fixture.complete(&id).await;
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}

/// Waits until the worker shuts down: then it is no longer listed, although a commit is still
/// running.
async fn no_longer_listed(fixture: &VisitsFixture) {
    eventually("the worker is no longer listed", async || {
        fixture.sandbox.json("workers").await == serde_json::json!([])
    })
    .await;
}
