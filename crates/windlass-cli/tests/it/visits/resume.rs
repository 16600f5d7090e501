//! A job is interrupted with some chunks completed, one started and most of them pending.

use crate::visits::fixture::{ITEMS, THIRD_CHUNK, VisitsFixture};

/// Two chunks are completed, the third is started, the others are pending, and no worker is left.
async fn killed_in_the_third_chunk(fixture: &VisitsFixture) -> String {
    fixture.close([THIRD_CHUNK]).await;
    let id = fixture.submit().await;
    let worker = fixture.sandbox.spawn(&format!("worker --job {id} --concurrency 1"));
    fixture.held_up(1).await;
    fixture.chunks_done(&id, 2).await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;

    let done = fixture.number("SELECT count(*) FROM maps WHERE updated_date IS NOT NULL").await;
    assert!((2 * ITEMS..3 * ITEMS).contains(&done), "{done} rows are updated");
    let marked = fixture.marked().await;
    assert!(marked >= ITEMS, "{marked} rows of the third chunk are marked, {done} are updated");
    id
}

#[tokio::test]
async fn the_same_job_continues() {
    let fixture = VisitsFixture::new().await;
    let id = killed_in_the_third_chunk(&fixture).await;
    fixture.complete(&id).await;
    fixture.updated_once().await;
    let chunks = fixture.sandbox.chunks(&id).await;
    assert!(chunks[..2].iter().all(|chunk| chunk["epoch"] == 1), "finished chunks were leased");
    assert_eq!(chunks[2]["losses"], 1);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_new_job_processes_the_remaining_rows() {
    let fixture = VisitsFixture::new().await;
    let id = killed_in_the_third_chunk(&fixture).await;
    let left = fixture.due().await;
    fixture.sandbox.run(&format!("cancel {id}")).await.ok();
    assert_eq!(fixture.marked().await, 0, "no mark is left");
    let again = fixture.submit().await;
    fixture.complete(&again).await;
    assert_eq!(fixture.sandbox.job(&again).await["items"]["processed"], left);
    fixture.updated_once().await;
    fixture.sandbox.prove(&again).await;
}
