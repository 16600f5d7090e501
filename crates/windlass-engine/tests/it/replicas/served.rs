//! Reads on replicas: `map`, `export` and dry runs, in turn.

use crate::replicas::fixture::{MAP, Reads, ReplicaFixture, at_one_instant, builder, run};
use tempfile::TempDir;
use windlass_drivers::Sqlite;
use windlass_testkit::free_port;

#[tokio::test]
async fn maps_are_distributed_over_the_replicas() {
    let (fixture, engine) = ReplicaFixture::warmed(400, 2, "1h").await;
    let job = run(&engine).await;
    let Reads { primary, replicas } = fixture.read_by(&engine, job.id).await;
    assert_eq!(primary, 0);
    assert_eq!(replicas.iter().sum::<i64>(), 400);
    assert!(replicas.iter().all(|rows| *rows > 0), "{replicas:?}");
}

/// A snapshot exists on one server only. Rows are planned by keys and by blocks.
#[tokio::test]
async fn one_replica_serves_a_job_that_is_read_at_one_instant() {
    let fixture = ReplicaFixture::new(3000, 2).await;
    for items in [20, 500] {
        let job = at_one_instant().replace("chunk.items = 10", &format!("chunk.items = {items}"));
        let engine = fixture.engine("1h", &job).await;
        fixture.warm(&engine).await;
        let done = run(&engine).await;
        assert!(done.chunks.total >= 4, "{done:?}");
        let Reads { primary, mut replicas } = fixture.read_by(&engine, done.id).await;
        replicas.sort_unstable();
        assert_eq!((primary, replicas.as_slice()), (0, [0, 3000].as_slice()), "{items}");
    }
}

#[tokio::test]
async fn connections_to_a_replica_are_limited_with_many_workers() {
    let (fixture, engine) = ReplicaFixture::warmed(400, 1, "1h").await;
    // All queries wait at the gate, so all opened connections stay open.
    let copy = fixture.copy(0);
    let gate = copy.client().await;
    gate.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let id = crate::replicas::fixture::submit(&engine).await;
    let workers: Vec<_> = (0..5).map(|_| crate::replicas::fixture::start(&engine)).collect();
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'windlass'";
    let full = async || copy.one::<i64>(ours).await == 4;
    windlass_testkit::eventually("the pool is used up", crate::replicas::fixture::PATIENCE, full)
        .await;
    gate.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    crate::replicas::fixture::completed(&engine, id).await;
    assert_eq!(copy.one::<i64>(ours).await, 4, "max_connections, the one that asks included");
    for (handle, worker) in workers {
        handle.shutdown();
        worker.await.unwrap();
    }
}

#[tokio::test]
async fn an_unreachable_replica_does_not_affect_the_others() {
    let fixture = ReplicaFixture::new(100, 0).await;
    let folder = TempDir::new().unwrap();
    let nowhere = format!("postgres://windlass@127.0.0.1:{}/app", free_port());
    let builder = builder(&folder, fixture.app.url(), &[nowhere], "10s", MAP);
    let engine = builder.connect().await.unwrap();
    let job = run(&engine).await;
    assert_eq!(fixture.read_by(&engine, job.id).await, Reads { primary: 100, replicas: vec![] });
    let lags = engine.replicas("app").unwrap().lags().await;
    assert!(lags[0].1.is_err(), "{lags:?}");
}

/// A copy of a SQLite file does not lag. A copy that does not exist yet is read once it does.
#[tokio::test]
async fn a_sqlite_file_can_be_a_replica() {
    let folder = TempDir::new().unwrap();
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let make = async |name: &str| {
        let file = Sqlite::create(&folder.path().join(name)).unwrap();
        let sql = format!(
            "CREATE TABLE visits (id INTEGER PRIMARY KEY, file TEXT); \
             INSERT INTO visits VALUES (1, '{name}')"
        );
        file.write(move |tx| Ok(tx.execute_batch(&sql)?)).await.unwrap();
    };
    make("app.db").await;
    let job = "source.table = \"visits\"\nstep.map = \"SELECT file FROM {source} WHERE {chunk}\"";
    let urls = [url("copy.db")];
    let engine = builder(&folder, &url("app.db"), &urls, "10s", job).connect().await.unwrap();
    let read = async || {
        let id = run(&engine).await.id;
        engine
            .output(id, &windlass_connectors::EmittedCursor::default(), 10)
            .await
            .unwrap()
            .remove(0)
            .fields
    };
    assert_eq!(read().await, "{\"file\":\"app.db\"}");
    make("copy.db").await;
    crate::replicas::fixture::serving(&engine, 1).await;
    assert_eq!(read().await, "{\"file\":\"copy.db\"}");
}
