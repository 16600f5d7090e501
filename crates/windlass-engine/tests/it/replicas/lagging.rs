//! A replica that does not replay is not read, and is read again when it has caught up.

use crate::replicas::fixture::{PATIENCE, Reads, ReplicaFixture, run, serving};
use windlass_testkit::eventually;

#[tokio::test]
async fn a_lagging_replica_is_not_read_until_it_has_caught_up() {
    let (fixture, engine) = ReplicaFixture::warmed(100, 1, "1s").await;
    let copy = fixture.copy(0);
    copy.run("SELECT pg_wal_replay_pause()").await;
    fixture.app.run("INSERT INTO visits VALUES (101, 1.01, 0, 'late')").await;
    serving(&engine, 0).await;
    let job = run(&engine).await;
    let reads = fixture.read_by(&engine, job.id).await;
    assert_eq!(reads, Reads { primary: 101, replicas: vec![0] });

    copy.run("SELECT pg_wal_replay_resume()").await;
    // After a stall of this machine the worker has to probe again first, and a whole job may read the primary meanwhile.
    eventually("the replica is read again", PATIENCE, async || {
        serving(&engine, 1).await;
        let job = run(&engine).await;
        fixture.read_by(&engine, job.id).await.replicas[0] > 0
    })
    .await;
}
