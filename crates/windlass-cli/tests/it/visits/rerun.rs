//! Running a completed chunk or job again marks nothing and changes nothing.

use crate::common::{Data, eventually};
use crate::visits::fixture::{CHUNKS, VisitsFixture, logged};
use serde_json::{Value as Json, json};

/// Changes whenever any visit is written, even with the same values.
const VERSIONS: &str = "SELECT sum(hashtextextended(visit_id || ':' || version::text, 0)::numeric \
                        % 1000000007) FROM maps";

#[tokio::test]
async fn running_a_completed_job_again_changes_nothing() {
    let fixture = VisitsFixture::new().await;
    let id = fixture.submit().await;
    fixture.complete(&id).await;
    fixture.updated_once().await;
    let before = (fixture.changes().await, fixture.number(VERSIONS).await);

    let again = fixture.sandbox.json("run UPDATE_VISITS --parallel-segments 1").await;
    assert_eq!(again["status"], "COMPLETED");
    assert_eq!((&again["items"]["total"], &again["items"]["processed"]), (&0.into(), &0.into()));
    assert_eq!((fixture.changes().await, fixture.number(VERSIONS).await), before);

    // Only a visit that the application changes is due again.
    fixture.change(1).await;
    let again = fixture.sandbox.json("run UPDATE_VISITS --parallel-segments 1").await;
    assert_eq!(again["items"]["processed"], 1);
    assert_eq!((fixture.due().await, fixture.marked().await), (0, 0));
}

#[tokio::test]
async fn leasing_a_completed_chunk_again_changes_nothing() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;

    // The worker commits the whole first chunk, cannot report it to the store, and is killed.
    let Data::Postgres(database) = &fixture.data else { panic!("not PostgreSQL") };
    let lock = database.client().await;
    let first = format!("SELECT FROM windlass_chunks WHERE job_id = '{id}' AND number = 0");
    lock.batch_execute(&format!("BEGIN; {first} FOR UPDATE")).await.unwrap();
    fixture.open().await;
    eventually("all rows are updated", async || fixture.due().await == 0).await;
    worker.kill9();
    worker.wait().await;
    // What the worker has sent to the store must not be executed after the kill.
    lock.batch_execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid(); ROLLBACK",
    )
    .await
    .unwrap();
    // If the chunk ran again, it would find this visit due. It is left to the next job.
    fixture.change(1).await;
    let before = (fixture.changes().await, fixture.number(VERSIONS).await);

    let worker = fixture.sandbox.spawn(&format!("worker --job {id} --log-format json"));
    let log = worker.wait().await.ok().stderr;
    let event = &logged(&log, "chunk already processed")[0];
    assert_eq!((&event["marked"], &event["updated"]), (&0.into(), &0.into()), "{event:#}");
    assert_eq!(logged(&log, "rows marked"), Vec::<Json>::new());
    assert_eq!(fixture.sandbox.status(&id).await, "COMPLETED");
    let chunk = &fixture.sandbox.chunks(&id).await[0];
    assert_eq!(chunk["rowsUpdated"], chunk["items"], "of the earlier lease: {chunk:#}");
    assert_eq!((&chunk["losses"], &chunk["epoch"]), (&1.into(), &2.into()), "{chunk:#}");
    assert_eq!((fixture.changes().await, fixture.number(VERSIONS).await), before);
    assert_eq!((fixture.due().await, fixture.marked().await), (1, 0));
    // The visit is due in a range that the job has passed, so the audit cannot distinguish it from a missed row.
    fixture.cannot_be_judged(&id, "matching `source.where`").await;
}

#[tokio::test]
async fn chunks_whose_rows_another_job_has_updated_are_already_processed() {
    let fixture = VisitsFixture::new().await;
    // The first job is planned, and its worker is killed in its first commit.
    fixture.close([1]).await;
    let id = fixture.submit().await;
    let worker = fixture.sandbox.spawn(&format!("worker --job {id} --concurrency 1"));
    fixture.held_up(1).await;
    worker.kill9();
    worker.wait().await;
    fixture.open().await;
    // The second job updates all rows.
    let other = fixture.submit().await;
    fixture.complete(&other).await;
    for chunk in fixture.sandbox.chunks(&other).await {
        assert_eq!(chunk["rowsMarked"], chunk["items"], "{chunk:#}");
        assert_eq!(chunk["rowsUpdated"], chunk["items"], "{chunk:#}");
        assert_eq!(chunk["message"], Json::Null, "{chunk:#}");
    }
    let before = (fixture.changes().await, fixture.number(VERSIONS).await);

    fixture.complete(&id).await;
    let chunks = fixture.sandbox.chunks(&id).await;
    assert_eq!(chunks.len() as i64, CHUNKS);
    for chunk in chunks {
        let found = json!([chunk["rowsMarked"], chunk["rowsUpdated"], chunk["message"]]);
        assert_eq!(found, json!([0, 0, "already processed"]), "{chunk:#}");
    }
    assert_eq!((fixture.changes().await, fixture.number(VERSIONS).await), before);
    fixture.updated_once().await;
}
