//! What happens to the processes from outside: requests, operators, another program's writes, and process faults.

use crate::focus::Focus;
use crate::plan::DatabaseFault;
use crate::process::Processes;
use crate::system;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;
use windlass_core::problem::Code;
use windlass_core::{DeadLetterStatus, Identity, JobId, Request, Retention};
use windlass_engine::{Engine, EngineError, Result};
use windlass_store::DeadLetterFilter;

/// How long a caller waits for an answer before it asks another process.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least time for which jobs are kept.
const SHORTEST_RETENTION: Duration = Duration::from_secs(30);

/// Submits a request until a process answers. The idempotency key makes it one job.
pub(crate) async fn submit(processes: Arc<Processes>, job_type: &'static str, tag: String) {
    // Drawn from the tag: a repeated request must be the same.
    let drawn: u32 = tag.bytes().map(u32::from).sum();
    let request = Request {
        params: [("tag".to_owned(), tag.as_str().into())].into(),
        idempotency_key: Some(format!("{job_type} {tag}")),
        parallel_segments: Some(1 + drawn % 4),
        priority: Some((drawn % 10) as u8),
        ..Request::new(job_type)
    };
    // Not longer: the key of a job that was pruned makes a new job.
    let give_up = Instant::now() + SHORTEST_RETENTION / 2;
    while Instant::now() < give_up {
        if let Some(process) = processes.any() {
            processes.env.requested.lock().insert((job_type, tag.clone()));
            let identity = Identity { name: "user".to_owned(), ..Identity::default() };
            let submitting = process.engine.submit(request.clone(), identity);
            match tokio::time::timeout(PATIENCE, submitting).await {
                Ok(Ok(job)) => {
                    processes.env.submitted.fetch_add(1, Relaxed);
                    processes
                        .env
                        .add("user", &format!("submitted {job_type} {tag} as {}", job.id()));
                    return;
                }
                Ok(Err(EngineError::Problem(problem))) if problem.code != Code::Unreachable => {
                    processes.env.violate(format!("{job_type} {tag} is refused: {problem}"));
                    return;
                }
                Ok(Err(error)) => processes.env.add("user", &format!("submit {job_type}: {error}")),
                Err(_) => processes.env.add("user", &format!("submit {job_type}: no answer")),
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Operators who do anything at any moment.
pub(crate) async fn operate(processes: Arc<Processes>, mean: Duration) {
    loop {
        tokio::time::sleep(processes.env.around(mean)).await;
        let Some(process) = processes.any() else { continue };
        let operations = operations(processes.env.plan.focus);
        let operation = operations[processes.env.pick(operations.len())];
        if processes.env.plan.database_fault == DatabaseFault::StoreRestored
            && operation.is_lost_by_a_restore()
        {
            continue;
        }
        let target = any_job(&processes);
        let acting = act(&processes, &process.engine, operation, target);
        let outcome = match tokio::time::timeout(PATIENCE, acting).await {
            Ok(Ok(())) => "done".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        let target = target.map(|job| job.to_string()).unwrap_or_default();
        processes.env.add("oper", &format!("{operation:?} {target}: {outcome}"));
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Pause,
    Resume,
    Cancel,
    Retry,
    Redrive,
    Ignore,
    Repair,
    Prune,
    Throughput,
    Stop,
    Start,
}

impl Operation {
    /// A restored store does not know of it, although its effects on the data remain.
    fn is_lost_by_a_restore(self) -> bool {
        matches!(
            self,
            Operation::Cancel | Operation::Redrive | Operation::Ignore | Operation::Prune
        )
    }
}

/// Those that help are more frequent than those that end something.
const OPERATIONS: [Operation; 17] = [
    Operation::Pause,
    Operation::Resume,
    Operation::Resume,
    Operation::Cancel,
    Operation::Retry,
    Operation::Retry,
    Operation::Retry,
    Operation::Redrive,
    Operation::Redrive,
    Operation::Redrive,
    Operation::Ignore,
    Operation::Repair,
    Operation::Prune,
    Operation::Throughput,
    Operation::Stop,
    Operation::Start,
    Operation::Start,
];

fn operations(focus: Focus) -> &'static [Operation] {
    use Operation::*;
    match focus {
        Focus::Retention => &[Retry, Retry, Retry, Resume],
        Focus::Cancels => &[Cancel, Retry, Resume],
        Focus::Redrives => &[Redrive, Redrive, Redrive, Retry, Resume],
        _ => &OPERATIONS,
    }
}

const JOB_TYPES: [&str; 4] = ["SQL", "HANDLER", "MAP", "CHILD"];

async fn act(
    processes: &Processes,
    engine: &Engine,
    what: Operation,
    job: Option<JobId>,
) -> Result<()> {
    let env = &processes.env;
    let job_type = JOB_TYPES[env.pick(JOB_TYPES.len())];
    let open = DeadLetterFilter {
        status: Some(DeadLetterStatus::New),
        limit: env.pick(4) as u32,
        ..DeadLetterFilter::default()
    };
    match (what, job) {
        (Operation::Pause, Some(job)) => engine.pause(job).await.map(drop),
        (Operation::Resume, Some(job)) => engine.resume(job).await.map(drop),
        (Operation::Cancel, Some(job)) => engine.cancel(job).await.map(drop),
        (Operation::Retry, Some(job)) => engine.retry(job).await.map(drop),
        (Operation::Redrive, _) => engine.redrive(&open).await.map(drop),
        (Operation::Ignore, _) => {
            let ignored = DeadLetterStatus::Ignored;
            Ok(engine.store().mark_dead_letters(&open, ignored).await.map(drop)?)
        }
        (Operation::Repair, _) => {
            repair(processes, env.pick(3) > 0);
            Ok(())
        }
        (Operation::Prune, _) => {
            let age = |longest| env.between(Duration::ZERO, Duration::from_secs(longest));
            prune_older(engine, age(60), SHORTEST_RETENTION + age(60)).await
        }
        (Operation::Throughput, _) => {
            let limit = |most| Some(1 + env.pick(most) as i64);
            Ok(engine.store().set_throughput(job_type, limit(3), limit(50)).await?)
        }
        (Operation::Stop, _) => Ok(engine.store().stop(job_type, true).await?),
        (Operation::Start, _) => Ok(engine.store().stop(job_type, false).await?),
        (_, None) => Ok(()),
    }
}

async fn prune_older(engine: &Engine, chunks: Duration, jobs: Duration) -> Result<()> {
    engine.prune(Some(&Retention { chunks, jobs, dead_letters: None })).await.map(drop)
}

/// Prunes again and again, and as early as possible.
pub(crate) async fn prune(processes: Arc<Processes>, mean: Duration) {
    loop {
        tokio::time::sleep(processes.env.around(mean)).await;
        let Some(process) = processes.any() else { continue };
        let pruning = prune_older(&process.engine, Duration::ZERO, SHORTEST_RETENTION);
        let pruned =
            tokio::time::timeout(PATIENCE, pruning).await.is_ok_and(|pruned| pruned.is_ok());
        processes.env.add("oper", if pruned { "pruned" } else { "not everything is pruned" });
    }
}

/// Decides whether bad items are accepted from now on.
pub(crate) fn repair(processes: &Processes, repaired: bool) {
    let sql = "UPDATE sim_settings SET repaired = ?1";
    if let Err(error) = processes.env.app.with(|db| db.execute(sql, [repaired])) {
        processes.env.violate(format!("the simulation failed: {error}"));
    }
}

fn any_job(processes: &Processes) -> Option<JobId> {
    let sql = match processes.env.plan.focus {
        Focus::Retention => "SELECT id FROM windlass_jobs WHERE status = 'FAILED' ORDER BY id",
        _ => "SELECT id FROM windlass_jobs ORDER BY id",
    };
    let jobs = processes.env.store.with(|db| crate::oracle::texts(db, sql)).ok()?;
    jobs.get(processes.env.pick(jobs.len()))?.parse().ok()
}

/// Another program that writes to the same records, under their version.
pub(crate) async fn write(processes: Arc<Processes>, mean: Duration) {
    for number in 0.. {
        tokio::time::sleep(processes.env.around(mean)).await;
        let item = 1 + processes.env.pick(processes.env.plan.items as usize) as i64;
        let sql =
            "UPDATE items SET marks = marks || ?2, version = version + 1 WHERE id = ?1 AND NOT bad";
        let written = processes.env.app.with(|db| db.execute(sql, (item, format!("w{number};"))));
        match written {
            Ok(_) => processes.env.add("other", &format!("wrote to item {item}")),
            Err(error) => processes.env.violate(format!("the simulation failed: {error}")),
        }
    }
}

const FREEZE: usize = 1;

/// Kills and freezes processes, and sets the clock of the databases.
pub(crate) async fn process_faults(processes: Arc<Processes>, mean: Duration) {
    let env = &processes.env;
    loop {
        tokio::time::sleep(env.around(mean)).await;
        let what = match env.plan.focus {
            Focus::Stalls | Focus::Cancels | Focus::Recoveries => FREEZE,
            _ => env.pick(4),
        };
        match (what, processes.any()) {
            (0, _) => {
                let by = chrono::Duration::seconds(env.pick(121) as i64 - 60);
                env.add("clock", &format!("set by {by}"));
                system::set_clock(by);
            }
            (FREEZE, Some(process)) => {
                let longest = if env.plan.focus == Focus::None { 40 } else { 12 };
                let time = env.between(Duration::from_millis(100), Duration::from_secs(longest));
                env.add(&process.life.name, &format!("frozen for {time:?}"));
                process.life.freeze(time);
            }
            (_, Some(process)) if process.life.end() => {
                env.add(&process.life.name, "killed");
                let _ = env.crashed.send(process.life.number);
            }
            _ => {}
        }
    }
}
