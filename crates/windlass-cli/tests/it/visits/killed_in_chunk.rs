//! A process is killed in the middle of a chunk. Another continues with the remaining rows of the
//! chunk.

use crate::visits::fixture::VisitsFixture;

#[tokio::test]
async fn a_chunk_whose_worker_is_killed_continues_with_the_remaining_rows() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    let (left, changes) = (fixture.due().await, fixture.changes().await);
    worker.kill9();
    worker.wait().await;
    fixture.open().await;

    // Some of the chunk is committed. The remaining rows still have their mark.
    assert!((200..400).contains(&left), "{left} rows are left");
    assert_eq!(fixture.marked().await, left);

    // They are not marked again, but updated once.
    fixture.complete(&id).await;
    assert_eq!(fixture.changes().await - changes, left);
    fixture.updated_once().await;

    let chunks = fixture.sandbox.chunks(&id).await;
    // A lost lease is not a failed attempt.
    assert_eq!((&chunks[0]["losses"], &chunks[0]["attempts"]), (&1.into(), &0.into()));
    assert!(chunks[1..].iter().all(|chunk| chunk["losses"] == 0 && chunk["epoch"] == 1));
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_chunk_continues_after_its_last_commit_and_ignores_earlier_rows() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;
    let left = fixture.due().await;
    // The row is before the cursor, so it is left to the next job.
    fixture.change(1).await;
    let changes = fixture.changes().await;
    fixture.complete(&id).await;
    assert_eq!((fixture.changes().await - changes, fixture.due().await), (left, 1));
    // The row is due in a range that the job has passed, so the audit cannot distinguish it from a missed row.
    fixture.cannot_be_judged(&id, "matching `source.where`").await;
}
