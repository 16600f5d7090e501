//! Scenario 2: a process is killed in the middle of a chunk. The chunk goes on with the rows that
//! are left.

use crate::visits::fixture::VisitsFixture;

#[tokio::test]
async fn a_chunk_killed_half_way_goes_on_with_the_rows_that_are_left() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    let (left, changes) = (fixture.due().await, fixture.changes().await);
    worker.kill9();
    worker.wait().await;
    fixture.open().await;

    // Some of the chunk is done. What is left is still marked, so that anybody can see it.
    assert!((200..400).contains(&left), "{left} rows are left");
    assert_eq!(fixture.marked().await, left);

    // They need no second mark: they are updated, once, and that is all that happens.
    fixture.complete(&id).await;
    assert_eq!(fixture.changes().await - changes, left);
    fixture.updated_once().await;

    let chunks = fixture.sandbox.chunks(&id).await;
    // To lose a lease is no failed attempt.
    assert_eq!((&chunks[0]["losses"], &chunks[0]["attempts"]), (&1.into(), &0.into()));
    assert!(chunks[1..].iter().all(|chunk| chunk["losses"] == 0 && chunk["epoch"] == 1));
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn it_goes_on_after_its_last_commit_and_does_not_look_back() {
    let fixture = VisitsFixture::new().await;
    let (id, worker) = fixture.half_way().await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;
    let left = fixture.due().await;
    // Behind the last commit, so it waits for the next job.
    fixture.change(1).await;
    let changes = fixture.changes().await;
    fixture.complete(&id).await;
    assert_eq!((fixture.changes().await - changes, fixture.due().await), (left, 1));
    // That row is due in a range that the job has passed, as one that was missed would be.
    fixture.cannot_be_judged(&id, "match `source.where`").await;
}
