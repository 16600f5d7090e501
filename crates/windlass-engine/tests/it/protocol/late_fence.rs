//! A worker that stalls between lease and fence may continue after the chunk is completed and its ledger row pruned.
//! The ledger cannot stop it then. The confirmation in the store does.

use crate::protocol::common::*;
use std::time::Duration;
use windlass_core::{ChunkStatus, Cursor, Retention};
use windlass_store::LeaseStatus;
use windlass_testkit::{Gate, PostgresServer, eventually};

const SHORT: &str = "chunk.lease = \"100ms\"\nchunk.timeout = \"30s\"";

pub(crate) async fn a_late_fence_recreates_a_pruned_row_and_the_confirmation_refuses_it(
    fixture: EngineFixture,
) {
    let (engine, job, stalled) = ByHand::new(&fixture, 10, &job(ADD, SHORT)).await;

    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    let now = Retention { chunks: Duration::ZERO, ..Retention::default() };
    assert_eq!(engine.prune(Some(&now)).await.unwrap().emptied, 1);
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_ledger").await, 0);

    let ledger = stalled.fence().await.expect("the row is made anew, at the old epoch");
    assert_eq!((ledger.epoch, ledger.commits, ledger.cursor.clone()), (1, 0, Cursor::Start));
    let standing = engine.store().confirm(&[stalled.leased.lease]).await.unwrap();
    assert_eq!(standing, [LeaseStatus::Lost]);
    fixture.each_once(10).await;

    // Only the confirmation prevents the commit: the ledger itself would accept it.
    stalled.commit(&ledger).await.unwrap();
    assert_eq!(fixture.int("SELECT sum(amount) FROM visits").await, 20);
}

/// The same with a real worker that cannot reach its database until the chunk is completed.
#[tokio::test]
async fn a_worker_that_stalls_between_lease_and_fence_does_nothing() {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(10).await;
    // A long lease, so that no heartbeat detects the loss before the confirmation does.
    let jobs = job(ADD, "chunk.lease = \"1m\"");
    let engine = fixture.engine(&jobs).await;
    let job = submit(&engine).await;
    plan_job(&engine, job).await;

    let addr = PostgresServer::shared().addr();
    let gate = Gate::shut(addr).await;
    // It is still connecting when the gate opens.
    let app = format!("{}?connect_timeout=300", gate.url_via(&fixture.app.url()));
    let behind = toml(&app, &fixture.store.url(), &jobs);
    let behind = builder(&behind).connect().await.unwrap();
    let stalled = Working::start(&behind, "stalled", 1);
    let leased = async || {
        let chunks = chunks(&engine, job).await;
        chunks[0].status == ChunkStatus::Processing && chunks[0].epoch == 1
    };
    eventually("the stalled worker leases", PATIENCE, leased).await;

    fixture.expire("windlass_chunks").await;
    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    let now = Retention { chunks: Duration::ZERO, ..Retention::default() };
    engine.prune(Some(&now)).await.unwrap();
    assert_eq!(fixture.int("SELECT count(*) FROM windlass_ledger").await, 0);

    gate.open();
    let fenced = async || fixture.int("SELECT count(*) FROM windlass_ledger").await == 1;
    eventually("the stalled worker fences", PATIENCE, fenced).await;
    // Its one slot works in order: when the next job is done, it has finished with this one.
    let next = submit(&engine).await;
    let next = ended(&engine, next).await;
    proven(&engine, &next).await;
    stalled.stop().await;
    assert_eq!(fixture.int("SELECT count(*) FROM visits WHERE amount = 2").await, 10);
}

/// A fence with an old epoch is refused as long as the row exists.
pub(crate) async fn a_late_fence_is_refused_by_a_row_at_a_higher_epoch(fixture: EngineFixture) {
    let (engine, job, stalled) = ByHand::new(&fixture, 10, &job(ADD, SHORT)).await;
    let done = work(&engine, job).await;
    proven(&engine, &done).await;
    assert_eq!(stalled.fence().await, None);
    fixture.each_once(10).await;
}

on_each!(
    a_late_fence_recreates_a_pruned_row_and_the_confirmation_refuses_it,
    a_late_fence_is_refused_by_a_row_at_a_higher_epoch,
);
