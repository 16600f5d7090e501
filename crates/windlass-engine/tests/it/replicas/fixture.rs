//! A primary with replicas, a table on it, and job types whose output shows which server they read.

use std::time::Duration;
use tempfile::TempDir;
use windlass_connectors::EmittedCursor;
use windlass_core::{Config, Job, JobId, JobStatus, Request};
use windlass_engine::{Builder, Engine, Handle, Options, Worker};
use windlass_testkit::{Database, PostgresServer, eventually};

/// The longest wait for a condition. Far longer than any takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A map whose output contains the port of the server that computed it.
pub(crate) const MAP: &str = "source.table = \"visits\"\nsource.consistency = \"chunk\"\n\
    step.map = \"SELECT inet_server_port() AS port, county, \
    count(*) AS n, sum(amount) AS total, sum(gate(id)) AS gates FROM {source} WHERE {chunk} \
    GROUP BY county\"\n\
    reduce = \"SELECT port, county, sum(n) AS n, sum(total) AS total FROM parts \
    GROUP BY port, county\"\nchunk.items = 10";

/// The same, read at one instant.
pub(crate) fn at_one_instant() -> String {
    MAP.replace("source.consistency = \"chunk\"", "source.consistency = \"snapshot\"")
}

/// The servers of one test, removed with it.
pub(crate) struct ReplicaFixture {
    pub(crate) primary: PostgresServer,
    pub(crate) replicas: Vec<PostgresServer>,
    pub(crate) app: Database,
    pub(crate) folder: TempDir,
}

impl ReplicaFixture {
    /// A table with `rows` rows on a primary, and `replicas` replicas that have it.
    pub(crate) async fn new(rows: i64, replicas: usize) -> ReplicaFixture {
        let options = windlass_testkit::Options { fsync: false, ..Default::default() };
        let primary = PostgresServer::start(options);
        let app = primary.database().await;
        app.run(VISITS).await;
        let insert = format!(
            "INSERT INTO visits SELECT i, i * 3.07, 0, 'county ' || i % 7 \
             FROM generate_series(1, {rows}) AS i"
        );
        app.run(&insert).await;
        let replicas = (0..replicas).map(|_| primary.replica()).collect();
        ReplicaFixture { primary, replicas, app, folder: TempDir::new().unwrap() }
    }

    /// The database on a replica.
    pub(crate) fn copy(&self, replica: usize) -> Database {
        self.replicas[replica].existing(self.app.name())
    }

    pub(crate) fn builder(&self, max_lag: &str, job: &str) -> Builder {
        let urls: Vec<_> =
            (0..self.replicas.len()).map(|n| self.copy(n).url().to_owned()).collect();
        builder(&self.folder, self.app.url(), &urls, max_lag, job)
    }

    pub(crate) async fn engine(&self, max_lag: &str, job: &str) -> Engine {
        self.builder(max_lag, job).connect().await.unwrap()
    }

    /// Asserts that the output of a mapped job equals the database's sums. Returns how many rows each server read.
    pub(crate) async fn read_by(&self, engine: &Engine, job: JobId) -> Reads {
        let output = engine.output(job, &EmittedCursor::default(), 1000).await.unwrap();
        let rows: Vec<String> = output.into_iter().map(|row| row.fields).collect();
        let output = format!("[{}]", rows.join(","));
        let client = self.app.client().await;
        let wrong = "WITH output AS (SELECT * FROM json_to_recordset($1::text::json) \
                     AS r(port int, county text, n bigint, total numeric)), \
                     summed AS (SELECT county, sum(n) AS n, sum(total) AS total FROM output \
                     GROUP BY county), \
                     own AS (SELECT county, count(*) AS n, sum(amount) AS total FROM visits \
                     GROUP BY county) \
                     SELECT count(*) FROM summed FULL JOIN own USING (county) \
                     WHERE (summed.n, summed.total) IS DISTINCT FROM (own.n, own.total)";
        let wrong: i64 = client.query_one(wrong, &[&output]).await.unwrap().get(0);
        assert_eq!(wrong, 0, "counties whose totals are not the database's own: {output}");
        let by = "SELECT port, sum(n)::bigint FROM json_to_recordset($1::text::json) \
                  AS r(port int, n bigint) GROUP BY port";
        let by = client.query(by, &[&output]).await.unwrap();
        let of = |server: &PostgresServer| {
            let port = i32::from(server.addr().port());
            let found = by.iter().find(|row| row.get::<_, i32>(0) == port);
            found.map_or(0, |row| row.get::<_, i64>(1))
        };
        Reads { primary: of(&self.primary), replicas: self.replicas.iter().map(of).collect() }
    }

    /// A table on a primary and its replicas, and an engine that has read from all of them.
    pub(crate) async fn warmed(rows: i64, replicas: usize, lag: &str) -> (ReplicaFixture, Engine) {
        let fixture = ReplicaFixture::new(rows, replicas).await;
        let engine = fixture.engine(lag, MAP).await;
        fixture.warm(&engine).await;
        (fixture, engine)
    }

    /// Runs `JOB` on the replicas: the first read starts their probes.
    pub(crate) async fn warm(&self, engine: &Engine) {
        let job = run(engine).await;
        self.read_by(engine, job.id).await;
        serving(engine, self.replicas.len()).await;
    }
}

/// How many rows each server read.
#[derive(Debug, PartialEq)]
pub(crate) struct Reads {
    pub(crate) primary: i64,
    pub(crate) replicas: Vec<i64>,
}

/// Waits until `replicas` replicas serve reads.
pub(crate) async fn serving(engine: &Engine, replicas: usize) {
    let what = format!("{replicas} replicas serve");
    let serve = async || engine.replicas("app").unwrap().serving() == replicas;
    eventually(&what, PATIENCE, serve).await;
}

pub(crate) fn builder(
    folder: &TempDir,
    url: &str,
    replicas: &[String],
    max_lag: &str,
    job: &str,
) -> Builder {
    let toml = format!(
        "[store]\nurl = \"sqlite:{}/store.db\"\n[connections.app]\nurl = \"{url}\"\n\
         replicas = {replicas:?}\nmax_lag = \"{max_lag}\"\nmax_connections = 4\n[jobs.JOB]\n\
         source.connection = \"app\"\nretry.attempts = 1\n{job}\n",
        folder.path().display()
    );
    let config = Config::parse(&toml, |_| None).unwrap_or_else(|error| panic!("{error}: {toml}"));
    assert_eq!(config.problems(), []);
    Engine::builder(config)
}

pub(crate) async fn submit(engine: &Engine) -> JobId {
    let request = Request { parallel_segments: Some(1), ..Request::new("JOB") };
    engine.submit(request, Engine::local_identity()).await.unwrap().id()
}

/// A worker that runs until its runtime is dropped.
pub(crate) fn start(
    engine: &Engine,
) -> (Handle, tokio::task::JoinHandle<windlass_engine::WorkerStats>) {
    let options = Options::default().with_slots(2).with_name("worker");
    let (worker, handle) = Worker::new(engine.clone(), options);
    (handle, tokio::spawn(worker.run()))
}

/// Waits until a job is completed, without a failed attempt.
pub(crate) async fn completed(engine: &Engine, id: JobId) -> Job {
    let stands = |job: &Job| job.status.is_final() || job.status == JobStatus::Paused;
    eventually("the job ends", PATIENCE, async || stands(&engine.job(id).await.unwrap())).await;
    let job = engine.job(id).await.unwrap();
    assert_eq!((job.status, &job.error), (JobStatus::Completed, &None));
    job
}

/// Submits `JOB` and works it to its end.
pub(crate) async fn run(engine: &Engine) -> Job {
    let id = submit(engine).await;
    let (handle, worker) = start(engine);
    let job = completed(engine, id).await;
    handle.shutdown();
    worker.await.unwrap();
    job
}

/// `gate` waits while the lock of its rows is held: 7 from row 150 on, 8 from row 250 on.
const VISITS: &str = "
    CREATE TABLE visits (
        id      bigint         NOT NULL PRIMARY KEY,
        amount  numeric(20, 2) NOT NULL,
        version bigint         NOT NULL DEFAULT 0,
        county  text           NOT NULL
    );
    CREATE FUNCTION gate(id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            IF id >= 150 THEN PERFORM pg_advisory_xact_lock_shared(7); END IF;
            IF id >= 250 THEN PERFORM pg_advisory_xact_lock_shared(8); END IF;
            RETURN 0;
        END $$;";
