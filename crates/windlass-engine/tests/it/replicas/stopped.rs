//! A replica that is stopped during a read, and started again while the job runs.

use crate::replicas::fixture::{
    PATIENCE, ReplicaFixture, at_one_instant, completed, serving, start, submit,
};
use tokio_postgres::Client;
use windlass_testkit::{Database, eventually};

/// Closes a gate of a server until the returned client is dropped or unlocks it.
async fn close(database: &Database, gate: i32) -> Client {
    let client = database.client().await;
    client.batch_execute(&format!("SELECT pg_advisory_lock({gate})")).await.unwrap();
    client
}

/// Waits until a query waits at a gate of a server.
async fn query_waits(database: &Database) {
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let waits = async || database.one::<i64>(waiting).await > 0;
    eventually("a query waits at the gate", PATIENCE, waits).await;
}

#[tokio::test]
async fn a_replica_stopped_during_a_read_serves_again_after_its_restart() {
    let (fixture, engine) = ReplicaFixture::warmed(500, 1, "10s").await;
    let _on_replica = close(&fixture.copy(0), 7).await;
    let on_primary = close(&fixture.app, 8).await;
    let id = submit(&engine).await;
    let (handle, worker) = start(&engine);
    query_waits(&fixture.copy(0)).await;
    fixture.replicas[0].stop_immediate();
    // The interrupted read continues on the primary, up to the next gate.
    query_waits(&fixture.app).await;
    serving(&engine, 0).await;
    fixture.replicas[0].start_again();
    serving(&engine, 1).await;
    on_primary.batch_execute("SELECT pg_advisory_unlock(8)").await.unwrap();
    completed(&engine, id).await;
    handle.shutdown();
    worker.await.unwrap();
    let reads = fixture.read_by(&engine, id).await;
    assert!(reads.primary >= 100, "while the replica was away: {reads:?}");
    assert!(reads.replicas[0] > 150, "before and after: {reads:?}");
}

/// The snapshot was on the replica that stopped, so everything is read again elsewhere.
#[tokio::test]
async fn a_job_is_read_again_when_the_replica_with_its_snapshot_stops() {
    let fixture = ReplicaFixture::new(500, 2).await;
    let engine = fixture.engine("10s", &at_one_instant()).await;
    fixture.warm(&engine).await;
    let gates = [close(&fixture.copy(0), 7).await, close(&fixture.copy(1), 7).await];
    let id = submit(&engine).await;
    let (handle, worker) = start(&engine);
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let mut reading = None;
    eventually("a query waits at the gate of one replica", PATIENCE, async || {
        for n in 0..2 {
            if fixture.copy(n).one::<i64>(waits).await > 0 {
                reading = Some(n);
            }
        }
        reading.is_some()
    })
    .await;
    let reading = reading.unwrap();
    fixture.replicas[reading].stop_immediate();
    drop(gates);
    completed(&engine, id).await;
    handle.shutdown();
    worker.await.unwrap();
    let reads = fixture.read_by(&engine, id).await;
    assert_eq!(reads.replicas[reading], 0, "{reads:?}");
    assert_eq!(reads.primary + reads.replicas[1 - reading], 500, "{reads:?}");
}

/// The replica stops after some batches are written to the part.
#[tokio::test]
async fn an_interrupted_export_is_written_again() {
    let fixture = ReplicaFixture::new(40_000, 1).await;
    let to = fixture.folder.path().join("out");
    // The gate is before later rows. Rows come in index order, so the first ones are already sent when it is
    // reached.
    let gated = format!(
        "ALTER DATABASE {} SET enable_sort = off; \
         CREATE VIEW gated AS SELECT id, amount, inet_server_port() AS port, \
         CASE WHEN id > 30000 THEN gate(200) END AS gate FROM visits ORDER BY id",
        fixture.app.name()
    );
    fixture.app.run(&gated).await;
    let job = format!(
        "source.query = \"SELECT * FROM gated\"\nsource.key = [\"id\"]\n\
         step.export = {{ format = \"jsonl\", to = \"file:{}/{{job_id}}/\" }}\nchunk.items = 40000",
        to.display()
    );
    let engine = fixture.engine("10s", &job).await;
    let _on_replica = close(&fixture.copy(0), 7).await;
    let id = submit(&engine).await;
    let (handle, worker) = start(&engine);
    query_waits(&fixture.copy(0)).await;
    fixture.replicas[0].stop_immediate();
    completed(&engine, id).await;
    handle.shutdown();
    worker.await.unwrap();
    let to = to.join(id.to_string());
    let manifest = std::fs::read_to_string(to.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["totals"]["rows"], 40_000);
    let parts = manifest["parts"].as_array().unwrap();
    let mut rows: Vec<serde_json::Value> = Vec::new();
    for part in parts {
        let text = std::fs::read_to_string(to.join(part["name"].as_str().unwrap())).unwrap();
        rows.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
    }
    let port = fixture.primary.addr().port();
    assert!(rows.iter().all(|row| row["port"] == port), "one snapshot of one server");
    let ids: std::collections::BTreeSet<_> = rows.iter().map(|row| row["id"].as_i64()).collect();
    assert_eq!((rows.len(), ids.len()), (40_000, 40_000), "each once");
}
