//! Two processes that load at the same time.

use super::fixture::{LOADED, RedshiftFixture};
use std::time::Duration;
use uuid::Uuid;
use windlass_connectors::{ConnectorError, connect};
use windlass_core::Cursor;
use windlass_testkit::Gate;

#[tokio::test]
async fn a_process_that_lost_the_merge_loads_nothing() {
    let fixture = RedshiftFixture::new().await;
    let (files, job) = (fixture.branches().await, Uuid::now_v7());
    fixture.reset().await;
    let old = fixture.fence(job, 1).await.unwrap().unwrap();
    let new = fixture.fence(job, 2).await.unwrap().unwrap();
    let lost = fixture.copy(&old, &files).await.unwrap_err();
    assert!(matches!(lost, ConnectorError::LeaseLost), "{lost}");
    fixture.copy(&new, &files).await.unwrap();
    assert_eq!(fixture.totals().await, LOADED);
    assert!(fixture.fence(job, 1).await.unwrap().is_none(), "a lower epoch is refused");
    let again = fixture.copy(&new, &files).await.unwrap_err();
    assert!(matches!(again, ConnectorError::LeaseLost), "loaded already: {again}");
    assert_eq!(fixture.totals().await, LOADED);
}

#[tokio::test]
async fn a_fence_waits_for_the_load_of_an_earlier_process() {
    let mut fixture = RedshiftFixture::new().await;
    let (files, job) = (fixture.branches().await, Uuid::now_v7());
    fixture.reset().await;
    // The earlier process is blocked in the middle of its transaction.
    let gate = Gate::before(fixture.server.addr(), "DELETE FROM").await;
    let gated = connect(&gate.url_via(&fixture.server.url()), 1).await.unwrap();
    let direct = std::mem::replace(&mut fixture.connection, gated);
    let old = fixture.fence(job, 1).await.unwrap().unwrap();
    let loading = fixture.copy(&old, &files);
    let chunk = old.chunk;
    let fence = windlass_connectors::Fence { chunk, epoch: 2, nonce: 14, lost: false };
    let taking_over = async {
        gate.reached().await;
        let waiting = async { direct.fence(&[fence]).await };
        let opening = async {
            let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted";
            windlass_testkit::eventually("the fence waits", Duration::from_secs(30), async || {
                fixture.database.one::<bool>(waits).await
            })
            .await;
            gate.open();
        };
        tokio::join!(waiting, opening).0
    };
    let (loaded, fenced) = tokio::join!(loading, taking_over);
    assert_eq!(loaded.unwrap().cursor, Cursor::End);
    let fenced = fenced.unwrap().pop().unwrap().unwrap();
    assert_eq!(fenced.cursor, Cursor::End, "the fence sees the load");
    assert_eq!(fixture.totals().await, LOADED);
}

#[tokio::test]
async fn loads_of_different_jobs_follow_each_other() {
    let fixture = RedshiftFixture::new().await;
    let files = fixture.branches().await;
    fixture.reset().await;
    let load = || fixture.load_until_committed(Uuid::now_v7(), &files);
    tokio::join!(load(), load(), load(), load());
    assert_eq!(fixture.totals().await, LOADED);
    let rows: i64 = fixture.database.one("SELECT count(*) FROM windlass_ledger").await;
    assert_eq!(rows, 4);
}
