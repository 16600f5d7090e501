//! A redrive that is stopped half-way: the letters of committed items are `reprocessed`, the others are released, and
//! the next redrive works each of those once.

use crate::protocol::common::*;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore};
use windlass_core::{
    Change, ChunkStatus, DeadLetterStatus, ItemError, Job, JobId, JobStatus, Outcome,
};
use windlass_engine::{Engine, Options, Redriven, Step, StepBatch, StepError, Worker};
use windlass_store::DeadLetterFilter;
use windlass_testkit::eventually;

const ROWS: i64 = 10;
/// The number of items after which the redrive is stopped, and the items per chunk.
const STOPS: [(usize, u32); 4] = [(0, 10), (3, 10), (9, 10), (6, 4)];

/// How the step stops in the first redrive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    /// It waits for the test.
    Wait,
    /// It inserts into a table that does not exist, which fails the job.
    Definition,
    /// It fails the chunk until its attempts are used up.
    Attempts,
}

/// Works items one by one: all fail in the first job, some in the first redrive, none afterwards.
#[derive(Clone)]
struct Script {
    phase: Arc<Mutex<Phase>>,
    reached: Arc<Notify>,
    go_on: Arc<Semaphore>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Fail,
    Redrive { calls: usize, stop_after: usize, stop: Stop },
    Succeed,
}

impl Script {
    fn set(&self, phase: Phase) {
        *self.phase.lock().unwrap() = phase;
    }

    /// What to do with the next item. In a redrive, the second item fails permanently again, and the third one is
    /// deferred.
    fn next(&self) -> Next {
        match &mut *self.phase.lock().unwrap() {
            Phase::Fail => Next::Answer(Err(ItemError::permanent("bad"))),
            Phase::Succeed => Next::Answer(Ok(())),
            Phase::Redrive { calls, stop_after, stop } if *calls >= *stop_after => {
                Next::Stop(*stop)
            }
            Phase::Redrive { calls, .. } => {
                *calls += 1;
                Next::Answer(match *calls {
                    2 => Err(ItemError::permanent("worse")),
                    3 => Err(ItemError::transient("not yet")),
                    _ => Ok(()),
                })
            }
        }
    }
}

enum Next {
    Answer(Result<(), ItemError>),
    Stop(Stop),
}

#[async_trait]
impl Step for Script {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        let mut outcomes = Vec::new();
        for item in &batch.items {
            let visit: Visit = serde_json::from_value(item.record.to_json()).unwrap();
            let done = || visit.done().unwrap();
            outcomes.push(match self.next() {
                Next::Answer(Ok(())) => done(),
                Next::Answer(Err(error)) => Outcome::Error(error),
                Next::Stop(Stop::Wait) => {
                    self.reached.notify_one();
                    let _permit = self.go_on.acquire().await.unwrap();
                    done()
                }
                Next::Stop(Stop::Definition) => {
                    Change::default().insert("nowhere", [("a", visit.id.into())]).into()
                }
                Next::Stop(Stop::Attempts) => return Err(StepError::ChunkFailed("no".to_owned())),
            });
        }
        Ok(outcomes)
    }
}

/// A running redrive that is about to be stopped.
struct Stopped {
    fixture: EngineFixture,
    engine: Engine,
    script: Script,
    first: Job,
    redrive: JobId,
    jobs: String,
}

impl Stopped {
    /// A job whose items are all dead letters, and a redrive of it that stops after some of them.
    async fn new(fixture: EngineFixture, stop: Stop, (stop_after, items): (usize, u32)) -> Stopped {
        fixture.visits(ROWS).await;
        let script = Script {
            phase: Arc::new(Mutex::new(Phase::Fail)),
            reached: Arc::default(),
            go_on: Arc::new(Semaphore::new(0)),
        };
        let more = format!("chunk.items = {items}\nchunk.commit = 1\nchunk.lease = \"30s\"");
        let jobs = job(HANDLER, &more);
        let builder = fixture.builder(&jobs);
        let engine = builder.step("work", Arc::new(script.clone())).connect().await.unwrap();
        let first = complete(&engine).await;
        assert_eq!(first.items.dead, ROWS);
        script.set(Phase::Redrive { calls: 0, stop_after, stop });
        let redriven = engine.redrive(&of(&first)).await.unwrap();
        assert_eq!(redriven.len(), 1, "{redriven:?}");
        let redrive = redriven[0].job_id;
        Stopped { fixture, engine, script, first, redrive, jobs }
    }

    /// The redrive has ended. Its letters have the right status, and another redrive works the rest.
    async fn resumes(self) {
        let Stopped { fixture, engine, script, first, .. } = self;
        script.set(Phase::Succeed);
        let done = "SELECT sum(amount) FROM visits";
        let effects = fixture.int(done).await;
        let status = |status| {
            move |letters: &[windlass_store::DeadLetter]| {
                letters.iter().filter(|letter| letter.status == status).count() as i64
            }
        };
        let before = letters(&engine, first.id).await;
        assert_eq!(before.len() as i64, ROWS);
        assert_eq!(status(DeadLetterStatus::Reprocessed)(&before), effects, "{before:#?}");
        for letter in before.iter().filter(|letter| letter.status == DeadLetterStatus::Reprocessed)
        {
            let key = letter.key.as_i64().unwrap();
            let amount = format!("SELECT amount FROM visits WHERE id = {key}");
            assert_eq!(fixture.int(&amount).await, 1, "{key}");
        }

        let again: Vec<Redriven> = engine.redrive(&of(&first)).await.unwrap();
        let taken: u64 = again.iter().map(|redriven| redriven.letters).sum();
        assert_eq!(taken as i64, ROWS - effects, "exactly the letters that are not settled");
        for redriven in again {
            let job = work(&engine, redriven.job_id).await;
            assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
        }
        fixture.each_once(ROWS).await;
        fixture.logged_once(ROWS).await;
        let after = letters(&engine, first.id).await;
        assert_eq!(status(DeadLetterStatus::Reprocessed)(&after), ROWS, "{after:#?}");
        assert!(engine.redrive(&of(&first)).await.unwrap().is_empty());
    }

    /// Works the redrive until its step waits.
    async fn work_until_stop(&self) -> Working {
        let worker = Working::start(&self.engine, "worker", 1);
        self.script.reached.notified().await;
        worker
    }
}

pub(crate) async fn stopped_by_a_cancellation(fixture: EngineFixture) {
    for stop in STOPS {
        let stopped = Stopped::new(fixture.another().await, Stop::Wait, stop).await;
        let worker = stopped.work_until_stop().await;
        let cancelled = stopped.engine.cancel(stopped.redrive).await.unwrap();
        assert_eq!(cancelled, JobStatus::Cancelled);
        stopped.script.go_on.add_permits(100);
        worker.stop().await;
        stopped.resumes().await;
    }
}

/// The redrive is paused first, and its chunk handed back.
pub(crate) async fn stopped_by_a_pause_and_a_cancellation(fixture: EngineFixture) {
    for stop in STOPS {
        let stopped = Stopped::new(fixture.another().await, Stop::Wait, stop).await;
        let worker = stopped.work_until_stop().await;
        stopped.engine.pause(stopped.redrive).await.unwrap();
        stopped.script.go_on.add_permits(1);
        let pending = async || {
            let chunks = chunks(&stopped.engine, stopped.redrive).await;
            chunks.iter().all(|chunk| chunk.status != ChunkStatus::Processing)
        };
        eventually("its chunk is handed back", PATIENCE, pending).await;
        worker.stop().await;
        let cancelled = stopped.engine.cancel(stopped.redrive).await.unwrap();
        assert_eq!(cancelled, JobStatus::Cancelled);
        stopped.resumes().await;
    }
}

/// The worker dies. Its lease is still valid when the redrive is cancelled.
pub(crate) async fn stopped_by_a_worker_that_dies(fixture: EngineFixture) {
    for stop in STOPS {
        let stopped = Stopped::new(fixture.another().await, Stop::Wait, stop).await;
        // A whole process with all its tasks, which ends in the middle.
        let process = tokio::runtime::Runtime::new().unwrap();
        let jobs = stopped.fixture.builder(&stopped.jobs);
        let builder = jobs.step("work", Arc::new(stopped.script.clone()));
        process.spawn(async move {
            let engine = builder.connect().await.unwrap();
            let options = Options::default().with_slots(1).with_name("dies");
            Worker::new(engine, options).0.run().await
        });
        stopped.script.reached.notified().await;
        process.shutdown_background();
        let cancelled = stopped.engine.cancel(stopped.redrive).await.unwrap();
        assert_eq!(cancelled, JobStatus::Cancelled);
        stopped.resumes().await;
    }
}

/// If a redrive fails by its definition, its other chunks stay open. Their letters are released when it is
/// cancelled.
pub(crate) async fn stopped_by_a_bad_definition(fixture: EngineFixture) {
    for stop in STOPS {
        let stopped = Stopped::new(fixture.another().await, Stop::Definition, stop).await;
        // One slot, so that no other chunk is being worked when the job fails.
        let worker = Working::start(&stopped.engine, "worker", 1);
        ended(&stopped.engine, stopped.redrive).await;
        worker.stop().await;
        // Only now: the next chunk may have been leased when the job failed, and is handed back.
        let failed = stopped.engine.job(stopped.redrive).await.unwrap();
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.error.as_ref().unwrap().contains("nowhere"), "{:?}", failed.error);
        if failed.chunks.pending > 0 {
            assert!(failed.error.unwrap().contains("windlass cancel"));
            // Only the letter that failed again is free.
            let free = stopped.engine.store().redrivable(&of(&stopped.first)).await.unwrap();
            assert_eq!(free.iter().map(|root| root.letters).sum::<u64>(), 1);
            let cancelled = stopped.engine.cancel(stopped.redrive).await.unwrap();
            assert_eq!(cancelled, JobStatus::Cancelled);
        }
        stopped.resumes().await;
    }
}

pub(crate) async fn stopped_by_used_up_attempts(fixture: EngineFixture) {
    for stop in STOPS {
        let stopped = Stopped::new(fixture.another().await, Stop::Attempts, stop).await;
        let failed = work(&stopped.engine, stopped.redrive).await;
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.error.unwrap().contains("windlass dead redrive"));
        stopped.resumes().await;
    }
}

/// A retry while its chunks are open works each item once, too.
pub(crate) async fn a_failed_redrive_is_retried_from_its_ledger(fixture: EngineFixture) {
    let stopped = Stopped::new(fixture, Stop::Definition, (2, 4)).await;
    let failed = work(&stopped.engine, stopped.redrive).await;
    assert!(failed.chunks.pending > 0, "{failed:?}");
    stopped.script.set(Phase::Succeed);
    stopped.engine.retry(stopped.redrive).await.unwrap();
    let done = work(&stopped.engine, stopped.redrive).await;
    assert_eq!(done.status, JobStatus::Completed, "{:?}", done.error);
    stopped.resumes().await;
}

/// The rows that its items emitted belong to the original job, and are not emitted again.
pub(crate) async fn emitted_rows_of_a_cancelled_redrive_stay(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let bad = Arc::new(Mutex::new((1..=ROWS).collect::<BTreeSet<i64>>()));
    let (reached, redriving) = (Arc::new(Notify::new()), bad.clone());
    let at = reached.clone();
    let handler = move |visit: Visit, _| {
        let (bad, reached) = (redriving.clone(), at.clone());
        async move {
            if bad.lock().unwrap().contains(&visit.id) {
                return Err(ItemError::permanent("bad"));
            }
            if bad.lock().unwrap().len() == 1 {
                // One item is committed by now.
                reached.notify_one();
                std::future::pending::<()>().await;
            }
            bad.lock().unwrap().insert(0);
            let emit = vec![[("id".to_owned(), visit.id.into())].into()];
            Ok(Outcome::Done(Change { emit, ..Change::default() }))
        }
    };
    let builder = fixture.builder(&job(HANDLER, "chunk.commit = 1")).handler("work", handler);
    let engine = builder.connect().await.unwrap();
    let first = complete(&engine).await;
    bad.lock().unwrap().clear();
    let redrive = engine.redrive(&of(&first)).await.unwrap().remove(0).job_id;
    let worker = Working::start(&engine, "worker", 1);
    reached.notified().await;
    engine.cancel(redrive).await.unwrap();
    worker.stop().await;
    let letters = letters(&engine, first.id).await;
    let done = letters.iter().filter(|letter| letter.status == DeadLetterStatus::Reprocessed);
    let done: Vec<_> = done.map(|letter| letter.key.clone()).collect();
    let output =
        engine.output(redrive, &windlass_connectors::EmittedCursor::default(), 100).await.unwrap();
    assert_eq!((done.len(), output.len()), (1, 1));
    assert_eq!(output[0].fields.replace(' ', ""), format!("{{\"id\":{}}}", done[0]));
}

on_each!(
    stopped_by_a_cancellation,
    stopped_by_a_pause_and_a_cancellation,
    stopped_by_a_worker_that_dies,
    stopped_by_a_bad_definition,
    stopped_by_used_up_attempts,
    a_failed_redrive_is_retried_from_its_ledger,
    emitted_rows_of_a_cancelled_redrive_stay,
);

fn of(job: &Job) -> DeadLetterFilter {
    DeadLetterFilter { job: Some(job.id), ..DeadLetterFilter::default() }
}
