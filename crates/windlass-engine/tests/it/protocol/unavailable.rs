//! A data server that is down: it is probed by one connection at a time, no chunk is leased meanwhile, and every
//! listing shows since when it is unavailable.

use crate::protocol::common::*;
use std::sync::Arc;
use tokio::sync::Semaphore;
use windlass_core::{Job, JobId, JobStatus, Request};
use windlass_engine::Engine;
use windlass_testkit::{MariaServer, PostgresServer, Proxy, eventually};

const ROWS: i64 = 400;
const SLOTS: usize = 4;

/// A server that the test may stop, with a proxy that counts the connections to it.
struct Outage {
    fixture: EngineFixture,
    proxy: Proxy,
    stop: Box<dyn Fn()>,
    start: Box<dyn Fn()>,
}

impl Outage {
    async fn postgres() -> Outage {
        let server = Arc::new(PostgresServer::start(Default::default()));
        let app = TestDatabase::Postgres(server.database().await);
        let proxy = Proxy::start(server.addr()).await;
        let (again, fixture) = (server.clone(), EngineFixture::postgres().await);
        Outage {
            fixture: EngineFixture { app, ..fixture },
            proxy,
            stop: Box::new(move || server.stop_immediate()),
            start: Box::new(move || again.start_again()),
        }
    }

    async fn mariadb() -> Outage {
        let server = Arc::new(MariaServer::start());
        let app = TestDatabase::Mariadb(server.database().await);
        let proxy = Proxy::start_mysql(server.addr()).await;
        let fixture = EngineFixture { app, ..EngineFixture::sqlite().await };
        let (stop, start) = (server.clone(), server);
        let (stop, start) = (move || stop.stop_immediate(), move || start.start_again());
        Outage { fixture, proxy, stop: Box::new(stop), start: Box::new(start) }
    }

    /// `JOB` on the server with one chunk per row, and `OTHER` on a SQLite file.
    async fn engine(&self, permits: &Arc<Semaphore>) -> Engine {
        let other = EngineFixture::sqlite().await;
        other.visits(20).await;
        let url = other.app.url();
        // The file is removed with the test.
        std::mem::forget(other.folder);
        let jobs = job(HANDLER, "chunk.items = 1");
        let others = job(ADD, "").replace("jobs.JOB", "jobs.OTHER").replace("\"app\"", "\"other\"");
        let connections = format!("[connections.other]\nurl = \"{url}\"\n");
        let app = self.proxy.url_via(&self.fixture.app.url());
        let toml = toml(&app, &self.fixture.store.url(), &format!("{connections}{jobs}{others}"));
        builder(&toml).handler("work", metered(permits)).connect().await.unwrap()
    }

    /// Works a job, and stops the server when this many rows are done and the slots wait in a handler.
    async fn begin_in_the_middle(&self, done: usize) -> (Engine, JobId, Working) {
        self.fixture.visits(ROWS).await;
        let permits = Arc::new(Semaphore::new(done));
        let engine = self.engine(&permits).await;
        let job = submit(&engine).await;
        let worker = Working::start(&engine, "worker", SLOTS);
        let waits = async || permits.available_permits() == 0;
        eventually("the slots wait in a handler", PATIENCE, waits).await;
        (self.stop)();
        permits.add_permits(10_000);
        (engine, job, worker)
    }

    /// How often chunks of a job were leased.
    async fn leases(&self, job: JobId) -> i64 {
        let id = self.fixture.spell("job_id::text", "job_id");
        let sql = format!("SELECT sum(epoch) FROM windlass_chunks WHERE {id} = '{job}'");
        self.fixture.store.int(&sql).await
    }

    /// Waits for this many more connections to the server.
    async fn probed(&self, times: usize) {
        let before = self.proxy.accepted();
        let probed = async || self.proxy.accepted() >= before + times;
        eventually("the database is probed again", PATIENCE, probed).await;
    }
}

fn is_unavailable(job: &Job) -> bool {
    let starts = |text: &Option<String>, with: &str| {
        text.as_deref().is_some_and(|text| text.starts_with(with))
    };
    starts(&job.error, "database `app` unavailable since 20")
        && starts(&job.waits_for, "database unavailable since 20")
}

/// The server stops in the middle of a job of many chunks.
async fn nothing_is_leased_while_the_server_is_down(outage: Outage) {
    let fixture = &outage.fixture;
    let (engine, job, worker) = outage.begin_in_the_middle(50).await;

    let handed_back = async || {
        let job = engine.job(job).await.unwrap();
        is_unavailable(&job) && job.chunks.processing == 0
    };
    eventually("the chunks are handed back and the job shows the reason", PATIENCE, handed_back)
        .await;
    let (leases, why) = (outage.leases(job).await, engine.job(job).await.unwrap().error.unwrap());
    let since = |why: &str| why.split(": ").next().unwrap().to_owned();
    outage.probed(4).await;
    assert_eq!(outage.leases(job).await, leases, "chunks were leased while it was down");
    let shown = engine.job(job).await.unwrap();
    assert!(is_unavailable(&shown), "{shown:?}");
    assert_eq!(since(shown.error.as_deref().unwrap()), since(&why), "since when does not change");
    assert_eq!(shown.status, JobStatus::Processing);
    for chunk in chunks(&engine, job).await {
        assert_eq!(chunk.attempts, 0, "an outage is no failed attempt: {chunk:?}");
    }

    // Jobs on a healthy connection continue.
    let other = Request { parallel_segments: Some(1), ..Request::new("OTHER") };
    let other = engine.submit(other, Engine::local_identity()).await.unwrap().id();
    assert_eq!(ended(&engine, other).await.status, JobStatus::Completed);
    assert!(is_unavailable(&engine.job(job).await.unwrap()));

    (outage.start)();
    let done = ended(&engine, job).await;
    worker.stop().await;
    assert_eq!(done.error, None);
    proven(&engine, &done).await;
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    // One lease per chunk, and one more for those that were leased ahead or being worked, that were in their last commit,
    // or that could not be completed because their commits could not be flushed. A loop of leases would be thousands.
    let (ahead, last_commits, uncompleted) = (16, 2, 16);
    let most = ROWS + (ahead + last_commits + uncompleted) * SLOTS as i64;
    let leases = outage.leases(job).await;
    assert!(leases <= most, "{leases} leases of {ROWS} chunks");
}

/// The server is down when the job is planned.
async fn nothing_is_planned_while_the_server_is_down(outage: Outage) {
    outage.fixture.visits(20).await;
    let permits = Arc::new(Semaphore::new(10_000));
    let engine = outage.engine(&permits).await;
    let job = submit(&engine).await;
    (outage.stop)();
    let worker = Working::start(&engine, "worker", SLOTS);
    let says = async || is_unavailable(&engine.job(job).await.unwrap());
    eventually("the job shows why it waits", PATIENCE, says).await;
    let id = outage.fixture.spell("job_id::text", "job_id");
    let plans = format!("SELECT sum(epoch) FROM windlass_segments WHERE {id} = '{job}'");
    let plans = async || outage.fixture.store.int(&plans).await;
    let before = plans().await;
    outage.probed(4).await;
    assert_eq!(plans().await, before, "the segment was leased while it was down");
    (outage.start)();
    let done = ended(&engine, job).await;
    worker.stop().await;
    proven(&engine, &done).await;
    outage.fixture.each_once(20).await;
}

/// The server is down when its job is cancelled.
async fn a_cancelled_job_ends_when_the_server_is_up_again(outage: Outage) {
    let (engine, job, worker) = outage.begin_in_the_middle(20).await;
    let says = async || is_unavailable(&engine.job(job).await.unwrap());
    eventually("the job shows why it waits", PATIENCE, says).await;
    engine.store().cancel(job).await.unwrap();
    let leases = outage.leases(job).await;
    outage.probed(4).await;
    assert_eq!(outage.leases(job).await, leases, "chunks were leased while it was down");
    // The job shows that it is being cancelled, and why that takes time.
    let error = engine.job(job).await.unwrap().error.unwrap();
    let (cancelled, waits) = error.rsplit_once("; ").unwrap();
    assert!(cancelled.contains("is being cancelled"), "{error}");
    assert!(waits.starts_with("database `app` unavailable since 20"), "{error}");
    (outage.start)();
    let over = async || engine.job(job).await.unwrap().finished_at.is_some();
    eventually("the cancelled job has ended", PATIENCE, over).await;
    worker.stop().await;
}

/// Tests on a server: the name of each test, its function, and the server.
macro_rules! on_outage {
    ($($name:ident: $promise:ident, $server:ident;)+) => {
        $(#[tokio::test]
        async fn $name() {
            $promise(Outage::$server().await).await;
        })+
    };
}

on_outage! {
    nothing_is_leased_while_postgres_is_down: nothing_is_leased_while_the_server_is_down, postgres;
    nothing_is_leased_while_mariadb_is_down: nothing_is_leased_while_the_server_is_down, mariadb;
    nothing_is_planned_while_postgres_is_down: nothing_is_planned_while_the_server_is_down, postgres;
    nothing_is_planned_while_mariadb_is_down: nothing_is_planned_while_the_server_is_down, mariadb;
    a_cancelled_job_ends_when_postgres_is_up_again: a_cancelled_job_ends_when_the_server_is_up_again, postgres;
}
