//! Never more than five chunks are worked at once, whatever the number of processes.

use crate::common::eventually;
use crate::visits::fixture::{CHUNKS, VisitsFixture};

/// Records the number of leased chunks whenever a chunk changes its status.
const COUNT: &str = "
    CREATE TABLE at_work (chunks bigint NOT NULL);
    CREATE FUNCTION count_at_work() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO at_work SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING';
        RETURN NULL;
    END $$;
    CREATE TRIGGER count_at_work AFTER UPDATE OF status ON windlass_chunks
        FOR EACH STATEMENT EXECUTE FUNCTION count_at_work();";

#[tokio::test]
async fn three_processes_never_work_more_than_five_chunks_at_once() {
    let fixture = VisitsFixture::new().await;
    // At least one gate in every chunk, so that leased chunks stay leased.
    fixture.close((0..CHUNKS * 2).map(|n| n * 250 + 1)).await;
    let id = fixture.submit().await;
    fixture.data.run(COUNT).await;
    let workers: Vec<_> = (0..3)
        .map(|_| fixture.sandbox.spawn(&format!("worker --job {id} --concurrency 4")))
        .collect();
    // Twelve slots are free, and five chunks reach their gates.
    fixture.held_up(5).await;
    eventually("five chunks are leased", async || {
        fixture.sandbox.job(&id).await["chunks"]["processing"] == 5
    })
    .await;

    fixture.open().await;
    for worker in workers {
        worker.wait().await.ok();
    }
    assert_eq!(fixture.number("SELECT max(chunks) FROM at_work").await, 5);
    fixture.updated_once().await;
    fixture.sandbox.prove(&id).await;
}
