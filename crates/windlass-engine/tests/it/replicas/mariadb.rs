//! MariaDB: a real replica that is stopped during a read, lags or does not replicate; reads that never go to it; a
//! second server that replicates nothing; and one whose status may not be queried.

use crate::replicas::fixture::{PATIENCE, builder, completed, run, serving, start, submit};
use std::collections::BTreeMap;
use tempfile::TempDir;
use windlass_connectors::EmittedCursor;
use windlass_core::{Change, Outcome, Request};
use windlass_engine::{Engine, ItemContext};
use windlass_testkit::{MariaDatabase, MariaServer, eventually};

const MAP: &str = "source.table = \"visits\"\n\
                   step.map = \"SELECT @@port AS port, count(*) AS n, sum(gate(id)) AS gates \
                   FROM {source} WHERE {chunk} GROUP BY 1\"\n\
                   reduce = \"SELECT port, sum(n) AS n FROM parts GROUP BY port\"\n\
                   chunk.items = 10";

/// `gate` waits while the lock of its rows is held: 7 from row 150 on, 8 from row 250 on.
const VISITS: &str = "
    CREATE TABLE visits (
        id      bigint NOT NULL PRIMARY KEY,
        amount  bigint NOT NULL DEFAULT 0,
        version bigint NOT NULL DEFAULT 0
    );
    CREATE FUNCTION gate(id bigint) RETURNS bigint NOT DETERMINISTIC NO SQL
        BEGIN
            IF id >= 150 THEN DO GET_LOCK('7', 100); DO RELEASE_LOCK('7'); END IF;
            IF id >= 250 THEN DO GET_LOCK('8', 100); DO RELEASE_LOCK('8'); END IF;
            RETURN 0;
        END;";

/// Inserts this many visits.
fn insert(rows: i64) -> String {
    let rows: Vec<String> = (1..=rows).map(|id| format!("({id})")).collect();
    format!("INSERT INTO visits (id) VALUES {}", rows.join(", "))
}

/// A primary and its replica, removed with the test.
struct MariadbReplicaFixture {
    primary: MariaServer,
    replica: MariaServer,
    app: MariaDatabase,
    copy: MariaDatabase,
    folder: TempDir,
}

impl MariadbReplicaFixture {
    async fn new(rows: i64) -> MariadbReplicaFixture {
        let primary = MariaServer::start_primary();
        let app = primary.database().await;
        app.run(VISITS).await;
        app.run(&insert(rows)).await;
        let replica = primary.replica();
        primary.reach(&replica).await;
        let copy = replica.existing(app.name());
        MariadbReplicaFixture { primary, replica, app, copy, folder: TempDir::new().unwrap() }
    }

    fn builder(&self, max_lag: &str, job: &str) -> windlass_engine::Builder {
        let urls = [self.copy.url().to_owned()];
        builder(&self.folder, self.app.url(), &urls, max_lag, job)
    }

    /// An engine that reads from the replica.
    async fn engine(&self, max_lag: &str) -> Engine {
        let engine = self.builder(max_lag, MAP).connect().await.unwrap();
        run(&engine).await;
        serving(&engine, 1).await;
        engine
    }

    /// How many rows of a job the primary and the replica read.
    async fn read_by(&self, engine: &Engine, job: windlass_core::JobId) -> (i64, i64) {
        let reads = reads(engine, job).await;
        let of = |server: &MariaServer| reads.get(&server.addr().port()).copied().unwrap_or(0);
        (of(&self.primary), of(&self.replica))
    }
}

/// How many rows of a job each server read, by its port.
async fn reads(engine: &Engine, job: windlass_core::JobId) -> BTreeMap<u16, i64> {
    let output = engine.output(job, &EmittedCursor::default(), 10).await.unwrap();
    let rows = output.into_iter().map(|row| {
        let row: serde_json::Value = serde_json::from_str(&row.fields).unwrap();
        let port = row["port"].as_u64().unwrap() as u16;
        (port, row["n"].as_str().unwrap().parse().unwrap())
    });
    rows.collect()
}

/// Closes a gate of a server until the returned connection is dropped.
async fn close(database: &MariaDatabase, gate: u32) -> impl Sized + use<> {
    let mut client = database.client().await;
    database.run_on(&mut client, &format!("DO GET_LOCK('{gate}', 0)")).await;
    client
}

/// Waits until a query waits at a gate of a server.
async fn query_waits(database: &MariaDatabase) {
    let waiting = "SELECT count(*) FROM information_schema.processlist WHERE state = 'User lock'";
    let waits = async || database.one::<i64>(waiting).await > 0;
    eventually("a query waits at the gate", PATIENCE, waits).await;
}

#[tokio::test]
async fn a_replica_stopped_during_a_read_serves_again_after_its_restart() {
    let fixture = MariadbReplicaFixture::new(500).await;
    let engine = fixture.engine("10s").await;
    let _on_replica = close(&fixture.copy, 7).await;
    let on_primary = close(&fixture.app, 8).await;
    let id = submit(&engine).await;
    let (handle, worker) = start(&engine);
    query_waits(&fixture.copy).await;
    fixture.replica.stop_immediate();
    // The interrupted read continues on the primary, up to the next gate.
    query_waits(&fixture.app).await;
    serving(&engine, 0).await;
    fixture.replica.start_again();
    serving(&engine, 1).await;
    drop(on_primary);
    completed(&engine, id).await;
    handle.shutdown();
    worker.await.unwrap();
    let (primary, replica) = fixture.read_by(&engine, id).await;
    assert_eq!(primary + replica, 500);
    assert!(primary >= 100, "while the replica was away: {primary}");
    assert!(replica > 150, "before and after: {replica}");
}

#[tokio::test]
async fn a_lagging_replica_is_not_read_until_it_has_caught_up() {
    let fixture = MariadbReplicaFixture::new(100).await;
    let engine = fixture.engine("2s").await;
    // Replicated changes wait for this lock, while rows can be read.
    let mut lock = fixture.copy.client().await;
    fixture.copy.run_on(&mut lock, "LOCK TABLES visits READ").await;
    fixture.app.run("INSERT INTO visits (id) VALUES (101)").await;
    serving(&engine, 0).await;
    let job = run(&engine).await;
    assert_eq!(fixture.read_by(&engine, job.id).await, (101, 0));

    fixture.copy.run_on(&mut lock, "UNLOCK TABLES").await;
    read_again(&fixture, &engine, 101).await;
}

/// Either replication thread: the one that fetches, and the one that applies.
#[tokio::test]
async fn a_replica_whose_replication_is_stopped_is_not_read_until_it_resumes() {
    let fixture = MariadbReplicaFixture::new(100).await;
    let engine = fixture.engine("2s").await;
    for thread in ["SQL_THREAD", "IO_THREAD"] {
        fixture.copy.run(&format!("STOP REPLICA {thread}")).await;
        serving(&engine, 0).await;
        let (_, lag) = engine.replicas("app").unwrap().lags().await.remove(0);
        let error = lag.unwrap_err().to_string();
        assert!(error.contains("its replication is stopped"), "{error}");
        let job = run(&engine).await;
        assert_eq!(fixture.read_by(&engine, job.id).await, (100, 0));
        fixture.copy.run(&format!("START REPLICA {thread}")).await;
        read_again(&fixture, &engine, 100).await;
    }
}

/// Waits until jobs read the replica again. After a stall of this machine the worker has to probe it first, and a whole job
/// may read the primary meanwhile.
async fn read_again(fixture: &MariadbReplicaFixture, engine: &Engine, rows: i64) {
    eventually("the replica is read again", PATIENCE, async || {
        serving(engine, 1).await;
        let job = run(engine).await;
        let (primary, replica) = fixture.read_by(engine, job.id).await;
        assert_eq!(primary + replica, rows);
        replica > 0
    })
    .await;
}

#[derive(serde::Deserialize)]
struct Visit {
    version: i64,
}

/// The version of the first record, as a dry run reads it.
async fn first_version(engine: &Engine) -> i64 {
    let dry = engine.dry_run(Request::new("JOB"), Engine::local_identity()).await.unwrap();
    dry.sample[0].before["version"].as_i64().unwrap()
}

/// With a limit of an hour, a replica that applies nothing counts as healthy, and its rows stay old.
#[tokio::test]
async fn records_that_are_written_back_are_read_from_the_primary() {
    let fixture = MariadbReplicaFixture::new(60).await;
    let job = "source.table = \"visits\"\nstep.handler = \"work\"\nstep.version = \"version\"\n\
               chunk.items = 10";
    let handler = async |visit: Visit, _: ItemContext| {
        Ok(Outcome::from(Change::default().set("amount", visit.version + 1)))
    };
    let engine = fixture.builder("1h", job).handler("work", handler).connect().await.unwrap();
    assert_eq!(first_version(&engine).await, 0);
    serving(&engine, 1).await;
    let mut lock = fixture.copy.client().await;
    fixture.copy.run_on(&mut lock, "LOCK TABLES visits READ").await;
    fixture.app.run("UPDATE visits SET version = 9").await;
    assert_eq!(first_version(&engine).await, 0, "a dry run sees what the replica has");
    let job = run(&engine).await;
    assert_eq!(job.items.processed, 60);
    assert_eq!(fixture.app.one::<i64>("SELECT count(*) FROM visits WHERE amount = 10").await, 60);
    fixture.copy.run_on(&mut lock, "UNLOCK TABLES").await;
}

/// A server that replicates nothing does not lag, like one that was promoted.
#[tokio::test]
async fn a_server_without_replication_serves_before_and_after_a_restart() {
    let (one, other) = (MariaServer::start(), MariaServer::start());
    let (app, copy) = (one.database().await, other.database().await);
    assert_eq!(app.name(), copy.name());
    for database in [&app, &copy] {
        database.run(VISITS).await;
        database.run(&insert(100)).await;
    }
    let folder = TempDir::new().unwrap();
    let urls = [copy.url().to_owned()];
    let engine = builder(&folder, app.url(), &urls, "10s", MAP).connect().await.unwrap();
    let read = async |server: &MariaServer| {
        let job = run(&engine).await;
        assert_eq!(reads(&engine, job.id).await, BTreeMap::from([(server.addr().port(), 100)]));
    };
    read(&other).await;
    other.stop_immediate();
    read(&one).await;
    serving(&engine, 0).await;
    other.start_again();
    serving(&engine, 1).await;
    read(&other).await;
}

/// The age of its rows is unknown, so it is not read, and the message states the missing permission.
#[tokio::test]
async fn a_replica_whose_status_may_not_be_queried_is_not_read() {
    let app = MariaServer::shared().database().await;
    app.run(VISITS).await;
    app.run(&insert(100)).await;
    app.run("CREATE USER reader@'%' IDENTIFIED BY 'reads'").await;
    app.run(&format!("GRANT SELECT, EXECUTE ON {}.* TO reader@'%'", app.name())).await;
    let (_, address) = app.url().split_once('@').unwrap();
    let urls = [format!("mysql://reader:reads@{address}")];
    let folder = TempDir::new().unwrap();
    let engine = builder(&folder, app.url(), &urls, "10s", MAP).connect().await.unwrap();
    run(&engine).await;
    let replicas = engine.replicas("app").unwrap();
    assert_eq!(replicas.serving(), 0);
    let (name, lag) = replicas.lags().await.remove(0);
    let error = lag.unwrap_err().to_string();
    assert!(error.contains("GRANT SLAVE MONITOR"), "{error}");
    assert!(!name.contains("reads"), "{name}");
}
