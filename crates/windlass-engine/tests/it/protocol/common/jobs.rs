//! Job types, workers, manually leased chunks, and queries of jobs.

use super::EngineFixture;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use windlass_connectors::{Commit, Connection, Effect, Fence, Ledger, Scope};
use windlass_core::{
    Change, ChunkStatus, Cursor, ItemError, Job, JobId, JobStatus, KeySet, Outcome, Request,
};
use windlass_engine::{Engine, Handle, Options, Worker, WorkerStats};
use windlass_store::{Capabilities, ChunkRow, DeadLetter, DeadLetterFilter, LeasedChunk};
use windlass_testkit::eventually;

/// The longest wait for a condition. Far longer than any takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A step that is not idempotent: it changes a row each time it runs.
pub(crate) const ADD: &str = "step.sql = \"UPDATE visits SET amount = amount + 1 WHERE {chunk}\"";
/// A step that calls the handler `work`.
pub(crate) const HANDLER: &str = "step.handler = \"work\"\nstep.version = \"version\"";

/// A job type named `JOB` on `visits`, with short delays.
pub(crate) fn job(step: &str, more: &str) -> String {
    format!(
        "[jobs.JOB]\nsource.connection = \"app\"\nsource.table = \"visits\"\n\
         retry.attempts = 3\nretry.backoff = \"1ms\"\n{step}\n{more}\n"
    )
}

/// A record of `visits` for handlers.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct Visit {
    pub(crate) id: i64,
    pub(crate) amount: i64,
    pub(crate) note: Option<String>,
}

impl Visit {
    /// The result of most handlers: increments the amount and inserts a line into the log.
    pub(crate) fn done(&self) -> Result<Outcome, ItemError> {
        let change = Change::default().set("amount", self.amount + 1);
        Ok(change.insert("log", [("visit", self.id.into())]).into())
    }
}

/// A request for all of `JOB`, with one segment, so that chunks have their full size.
pub(crate) fn request() -> Request {
    Request { parallel_segments: Some(1), ..Request::new("JOB") }
}

/// A request from JSON.
pub(crate) fn asked(json: serde_json::Value) -> Request {
    serde_json::from_value(json).unwrap()
}

/// Submits `JOB`.
pub(crate) async fn submit(engine: &Engine) -> JobId {
    engine.submit(request(), Engine::local_identity()).await.unwrap().id()
}

/// A running worker.
pub(crate) struct Working {
    pub(crate) handle: Handle,
    task: JoinHandle<WorkerStats>,
}

impl Working {
    pub(crate) fn start(engine: &Engine, name: &str, slots: usize) -> Working {
        let options = Options::default().with_slots(slots).with_name(name);
        let (worker, handle) = Worker::new(engine.clone(), options);
        Working { handle, task: tokio::spawn(worker.run()) }
    }

    /// Shuts it down and returns its statistics.
    pub(crate) async fn stop(self) -> WorkerStats {
        self.handle.shutdown();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the worker does not stop").unwrap()
    }
}

/// Waits until a job has ended or is paused.
pub(crate) async fn ended(engine: &Engine, job: JobId) -> Job {
    let stands = |job: &Job| job.status.is_final() || job.status == JobStatus::Paused;
    let ends = async || stands(&engine.job(job).await.unwrap());
    eventually("the job ends", PATIENCE, ends).await;
    engine.job(job).await.unwrap()
}

/// Works all jobs until this one has ended or is paused.
pub(crate) async fn work(engine: &Engine, job: JobId) -> Job {
    let worker = Working::start(engine, "worker", 2);
    let job = ended(engine, job).await;
    worker.stop().await;
    job
}

/// Submits `JOB` and works it.
pub(crate) async fn run(engine: &Engine) -> Job {
    let job = submit(engine).await;
    work(engine, job).await
}

/// Submits `JOB`, works it, and expects it to complete and to be proven.
pub(crate) async fn complete(engine: &Engine) -> Job {
    let job = run(engine).await;
    proven(engine, &job).await;
    job
}

/// Asserts that the job is completed and that the audit proves it.
pub(crate) async fn proven(engine: &Engine, job: &Job) {
    assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
    let audit = engine.audit(job.id).await.unwrap();
    assert!(audit.is_proven(), "{audit:#?}");
}

/// Plans a job without working it.
pub(crate) async fn plan_job(engine: &Engine, job: JobId) {
    let planner = Working::start(engine, "planner", 0);
    let planned = async || {
        let segments = engine.store().segments(job).await.unwrap();
        segments.iter().all(|row| row.status == ChunkStatus::Completed)
    };
    eventually("the job is planned", PATIENCE, planned).await;
    planner.stop().await;
}

/// The chunks of a job.
pub(crate) async fn chunks(engine: &Engine, job: JobId) -> Vec<ChunkRow> {
    engine.store().chunks(job, None, None, 1000).await.unwrap()
}

/// The dead letters of a job, in the order of their keys.
pub(crate) async fn letters(engine: &Engine, job: JobId) -> Vec<DeadLetter> {
    let filter = DeadLetterFilter { job: Some(job), limit: 1000, ..DeadLetterFilter::default() };
    let mut letters = engine.store().dead_letters(&filter).await.unwrap();
    letters.sort_by_key(|letter| letter.key.as_i64());
    letters
}

/// The keys of dead letters, if they are integers.
pub(crate) fn keys(letters: &[DeadLetter]) -> Vec<i64> {
    letters.iter().filter_map(|letter| letter.key.as_i64()).collect()
}

/// The capabilities of a worker whose steps the test performs itself.
pub(crate) fn by_hand(job: JobId) -> Capabilities {
    Capabilities {
        worker: "by hand".to_owned(),
        connections: vec!["app".to_owned()],
        handlers: vec!["work".to_owned()],
        only_job: Some(job),
        above_priority: None,
        except: Vec::new(),
        process: None,
    }
}

/// The first steps of a worker, one by one, through the same interfaces that the real worker uses.
pub(crate) struct ByHand {
    pub(crate) engine: Engine,
    pub(crate) leased: LeasedChunk,
    pub(crate) scope: Scope,
}

impl ByHand {
    /// Plans a job over this many visits and leases its first chunk.
    pub(crate) async fn new(
        fixture: &EngineFixture,
        rows: i64,
        jobs: &str,
    ) -> (Engine, JobId, ByHand) {
        fixture.visits(rows).await;
        let engine = fixture.engine(jobs).await;
        let job = submit(&engine).await;
        plan_job(&engine, job).await;
        let by_hand = ByHand::lease(&engine, job).await;
        (engine, job, by_hand)
    }

    /// Leases the next chunk of a planned job.
    pub(crate) async fn lease(engine: &Engine, job: JobId) -> ByHand {
        let leased = engine.store().lease_chunks(&by_hand(job), 1).await.unwrap();
        let leased = leased.into_iter().next().expect("a chunk waits");
        ByHand { engine: engine.clone(), leased, scope: scope(engine, job).await }
    }

    pub(crate) fn connection(&self) -> &Arc<dyn Connection> {
        self.engine.connection("app").unwrap()
    }

    pub(crate) async fn fence(&self) -> Option<Ledger> {
        let lease = self.leased.lease;
        let fence = Fence {
            chunk: lease.chunk,
            epoch: lease.epoch,
            nonce: lease.nonce,
            lost: self.leased.lost,
        };
        self.connection().fence(&[fence]).await.unwrap().pop().flatten()
    }

    /// Commits the step's statement on the whole chunk.
    pub(crate) async fn commit(
        &self,
        ledger: &Ledger,
    ) -> windlass_connectors::Result<windlass_connectors::Committed> {
        let effect = Effect::Statement(self.leased.key_set.clone());
        self.connection().commit(&self.scope, ledger, commit_of(effect)).await
    }
}

/// A commit to the end of a chunk with only this effect.
pub(crate) fn commit_of(effect: Effect) -> Commit {
    let (defer, resolve) = (Vec::new(), Vec::new());
    Commit { cursor: Cursor::End, effect, counts: Default::default(), defer, resolve }
}

/// What a job may reach.
pub(crate) async fn scope(engine: &Engine, job: JobId) -> Scope {
    let snapshot = engine.store().snapshot(job).await.unwrap().unwrap();
    let connection = engine.connection("app").unwrap();
    let table = connection.describe(&snapshot.definition.source).await.unwrap();
    Scope::new(snapshot.definition, table, &snapshot.request, &snapshot.identity).unwrap()
}

/// The number of records in a key set.
pub(crate) async fn count(engine: &Engine, job: JobId, key_set: &KeySet) -> i64 {
    let scope = scope(engine, job).await;
    engine.connection("app").unwrap().count(&scope, key_set).await.unwrap()
}
