//! Records that are written back are read from the primary, even if a replica is healthy. A dry run may read from the
//! replica.

use crate::replicas::fixture::{MAP, ReplicaFixture, run};
use windlass_core::{Change, Outcome, Request};
use windlass_engine::{Engine, ItemContext};

const HANDLER: &str = "source.table = \"visits\"\nstep.handler = \"work\"\nstep.version = \"version\"\nchunk.items = 10";

#[derive(serde::Deserialize)]
struct Visit {
    version: i64,
}

/// With a limit of an hour, a replica whose replay is paused counts as healthy, and its rows stay old.
async fn stale() -> (ReplicaFixture, Engine) {
    let fixture = ReplicaFixture::new(60, 1).await;
    let warm = fixture.engine("1h", MAP).await;
    fixture.warm(&warm).await;
    let handler = async |visit: Visit, _: ItemContext| {
        Ok(Outcome::from(Change::default().set("amount", visit.version + 1)))
    };
    let engine = fixture.builder("1h", HANDLER).handler("work", handler).connect().await.unwrap();
    // The first dry run starts the probes of the replica, which has all rows at that time.
    assert_eq!(first_version(&engine).await, 0);
    crate::replicas::fixture::serving(&engine, 1).await;
    fixture.copy(0).run("SELECT pg_wal_replay_pause()").await;
    fixture.app.run("UPDATE visits SET version = 9").await;
    (fixture, engine)
}

/// The version of the first record, as a dry run reads it.
async fn first_version(engine: &Engine) -> i64 {
    let dry = engine.dry_run(Request::new("JOB"), Engine::local_identity()).await.unwrap();
    dry.sample[0].before["version"].as_i64().unwrap()
}

#[tokio::test]
async fn records_that_are_written_back_are_read_from_the_primary() {
    let (fixture, engine) = stale().await;
    let job = run(&engine).await;
    assert_eq!(job.items.processed, 60);
    assert_eq!(fixture.app.one::<i64>("SELECT count(*) FROM visits WHERE amount = 10").await, 60);
}

#[tokio::test]
async fn a_dry_run_reads_on_a_replica_and_changes_nothing() {
    let (fixture, engine) = stale().await;
    assert_eq!(first_version(&engine).await, 0, "as the replica has it");
    assert_eq!(fixture.app.one::<i64>("SELECT count(*) FROM visits WHERE version = 9").await, 60);
}
