//! One history: a time with faults, a time without them, then the final checks.

use crate::environment::Environment;
use crate::focus::Focus;
use crate::plan::DatabaseFault;
use crate::process::{Process, Processes};
use crate::wire::Life;
use crate::{actors, database_faults, oracle, settled, system};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use windlass_engine::Engine;

/// How long work may take after the last fault. A lease, a backoff and a clock that was set back take minutes.
const LONGEST_RECOVERY: Duration = Duration::from_secs(3600);
const LONGEST_RESTART: Duration = Duration::from_secs(20);

/// Simulates a history and prints its result. Returns whether everything held.
pub(crate) fn simulate(seed: u64, focus: Option<Focus>, print: bool) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (env, restarts) = Environment::new(seed, focus, print)?;
    let outcome = runtime.block_on(history(&env, restarts));
    // Tasks of dead processes never end.
    runtime.shutdown_background();
    if let Err(error) = outcome {
        env.violate(format!("the simulation failed: {error:#}"));
    }
    let history = env.history.lock();
    let result = env.violation();
    println!(
        "seed {seed}: {}; {} events, {:.0} simulated seconds, history {}",
        result.as_deref().unwrap_or("everything held"),
        history.events(),
        system::elapsed().as_secs_f64(),
        history.hash(),
    );
    Ok(result.is_none())
}

async fn history(
    env: &Arc<Environment>,
    mut restarts: UnboundedReceiver<usize>,
) -> anyhow::Result<()> {
    env.add("plan", &format!("{:?}", env.plan));
    let life = Arc::new(Life::new(0, "check".to_owned()));
    let observer = Process::connect(env, &life, false).await?;
    oracle::watch_store(env)?;
    let processes = Processes::new(env.clone());
    env.set_faults(true);
    let mut actors = JoinSet::new();
    start_actors(&processes, &mut actors);
    processes.start_missing();
    let fault_time = tokio::time::sleep(env.plan.fault_time);
    tokio::pin!(fault_time);
    loop {
        tokio::select! {
            () = &mut fault_time => break,
            () = env.violated.notified() => return Ok(()),
            Some(number) = restarts.recv() => restart_later(&processes, number),
        }
    }
    env.add("phase", "no more faults");
    env.set_faults(false);
    actors.shutdown().await;
    processes.finish_restore().await;
    // Those that crashed and were not restarted yet.
    tokio::time::sleep(LONGEST_RESTART).await;
    processes.start_missing();
    submit_missing(&processes).await;
    settle(env, &observer.engine).await?;
    if env.violation().is_none() {
        settled::check(env, &observer.engine).await?;
    }
    Ok(())
}

fn restart_later(processes: &Arc<Processes>, number: usize) {
    let processes = processes.clone();
    tokio::spawn(async move {
        let delay = processes.env.between(Duration::from_millis(10), LONGEST_RESTART);
        tokio::time::sleep(delay).await;
        processes.start(number);
    });
}

/// The requests of a history: what is submitted, and its tag.
pub(crate) fn requests(env: &Environment) -> impl Iterator<Item = (&'static str, String)> {
    const KINDS: [&[&str]; 4] = [&["SQL"], &["HANDLER"], &["MAP"], &["SQL", "MAP"]];
    (0..env.plan.requests).flat_map(|number| {
        let kinds: &[&str] = match &env.plan {
            plan if plan.only_handlers() => &["HANDLER"],
            plan if plan.only_inserts() => &["INSERT"],
            plan => KINDS[(number + plan.items as usize) % KINDS.len()],
        };
        kinds.iter().map(move |kind| {
            let letter = match *kind {
                "HANDLER" => 'h',
                "INSERT" => 'i',
                _ => 'a',
            };
            (*kind, format!("{letter}{number};"))
        })
    })
}

fn start_actors(processes: &Arc<Processes>, actors: &mut JoinSet<()>) {
    let (plan, env) = (&processes.env.plan, &processes.env);
    for (job_type, tag) in requests(env) {
        let (processes, delay) =
            (processes.clone(), env.between(Duration::ZERO, plan.fault_time / 2));
        actors.spawn(async move {
            tokio::time::sleep(delay).await;
            actors::submit(processes, job_type, tag).await;
        });
    }
    if let Some(mean) = plan.operators {
        actors.spawn(actors::operate(processes.clone(), mean));
    }
    if let Some(mean) = plan.writer {
        actors.spawn(actors::write(processes.clone(), mean));
    }
    if let Some(mean) = plan.pruner {
        actors.spawn(actors::prune(processes.clone(), mean));
    }
    match plan.database_fault {
        DatabaseFault::None => {}
        DatabaseFault::StoreRestored => {
            drop(actors.spawn(database_faults::restore_store(processes.clone())))
        }
        DatabaseFault::DataLost => {
            drop(actors.spawn(database_faults::lose_data(processes.clone())))
        }
    }
    if let Some(mean) = plan.process_faults {
        actors.spawn(actors::process_faults(processes.clone(), mean));
    }
}

/// Submits what was not requested yet.
async fn submit_missing(processes: &Arc<Processes>) {
    for (job_type, tag) in requests(&processes.env) {
        if processes.env.requested.lock().contains(&(job_type, tag.clone())) {
            continue;
        }
        actors::submit(processes.clone(), job_type, tag).await;
    }
}

/// Waits until all jobs have ended.
async fn settle(env: &Arc<Environment>, engine: &Engine) -> anyhow::Result<()> {
    if env.plan.schedule {
        engine.pause_schedule("SCHEDULED", true).await?;
    }
    for control in engine.store().controls().await? {
        engine.store().stop(&control.subject, false).await?;
        engine.store().set_throughput(&control.subject, Some(100), Some(100_000)).await?;
    }
    let deadline = tokio::time::Instant::now() + LONGEST_RECOVERY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
            () = env.violated.notified() => return Ok(()),
        }
        let open = settled::open_work(env)?;
        if open.is_empty() {
            env.add("phase", "all jobs have ended");
            return Ok(());
        }
        settled::check_pauses(env)?;
        for job in settled::paused(env)? {
            let resumed = engine.resume(job.parse()?).await;
            env.add("oper", &format!("resume {job}: {resumed:?}"));
        }
        if tokio::time::Instant::now() > deadline {
            env.violate(format!("never ends: {}", open.join("; ")));
            return Ok(());
        }
    }
}
