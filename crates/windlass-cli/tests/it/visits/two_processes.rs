//! No row is updated by two chunks or by two processes, even if one process is killed and the other takes over its
//! chunks.

use crate::common::worked_by;
use crate::visits::fixture::{CHUNKS, VisitsFixture};

#[tokio::test]
async fn two_processes_never_update_the_same_row() {
    let fixture = VisitsFixture::new().await;
    // At least one gate in every chunk, so that both processes stop in the middle of a chunk.
    fixture.close((0..CHUNKS * 2).map(|n| n * 250 + 1)).await;
    let id = fixture.submit().await;
    let worker = format!("worker --job {id} --concurrency 1");
    let first = fixture.sandbox.spawn(&worker);
    fixture.held_up(1).await;
    let second = fixture.sandbox.spawn(&worker);
    fixture.held_up(2).await;

    let left = fixture.sandbox.held_by(&id, first.id()).await;
    assert!(!left.is_empty());
    first.kill9();
    first.wait().await;
    fixture.open().await;

    let second_id = second.id();
    second.wait().await.ok();
    let chunks = fixture.sandbox.chunks(&id).await;
    for number in left {
        let chunk = &chunks[number as usize];
        assert!(worked_by(chunk, second_id), "{chunk:#}");
    }
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}
