//! The lifetime of programs: for many batches, until the end of their input, and never longer than Windlass, however it
//! ends.

use crate::common::{CliSandbox, eventually, text};
use crate::steps::fixture::{
    batches, by_command, letters, notes, nothing_runs_soon, programs, with_accounts,
};
use std::collections::BTreeSet;
use windlass_testkit::{Descendant, Output, Running, children_of};

fn sorted(sandbox: &CliSandbox, name: &str) -> BTreeSet<String> {
    notes(sandbox, name).into_iter().collect()
}

/// Waits until a process has exited by itself, and then until nothing runs in its folder. The process is reaped only
/// then, because the test kit kills its process group when it reaps it.
async fn ended_alone(sandbox: &CliSandbox, process: Running) -> Output {
    eventually("the process ends", async || !process.is_running()).await;
    nothing_runs_soon(sandbox).await;
    process.wait().await
}

#[tokio::test]
async fn a_program_lives_for_many_batches_and_finishes_at_the_end_of_its_input() {
    let jobs = by_command("python3 raise.py", "chunk.items = 10\nchunk.commit = 5\n");
    let (data, sandbox) = with_accounts(200, &jobs).await;
    ended_alone(&sandbox, sandbox.spawn("run RAISE --concurrency 2")).await.ok();
    data.raised_once(200).await;
    assert_eq!(batches(&sandbox).len(), 40);
    let started = sorted(&sandbox, "started");
    // One for each of the two slots, and possibly one for the check before the submit.
    assert!((1..=3).contains(&started.len()), "{started:?}");
    assert_eq!(sorted(&sandbox, "ended"), started, "each program could finish");
}

#[tokio::test]
async fn a_worker_that_shuts_down_lets_its_programs_finish() {
    let jobs = by_command("python3 raise.py", "chunk.items = 10\n");
    let (data, sandbox) = with_accounts(100, &jobs).await;
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 2");
    sandbox.completed(&id).await;
    worker.term();
    ended_alone(&sandbox, worker).await.ok();
    data.raised_once(100).await;
    assert_eq!(sorted(&sandbox, "ended"), sorted(&sandbox, "started"));
}

#[tokio::test]
async fn a_worker_shuts_down_although_its_program_hangs() {
    let (data, sandbox) = with_accounts(5, &hanging()).await;
    let _id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 1");
    at_work(&sandbox).await;
    worker.term();
    ended_alone(&sandbox, worker).await.ok();
    let untouched = "SELECT count(*) FROM accounts WHERE id = 1 AND version = 1";
    assert_eq!(data.number(untouched).await, 1);
}

#[tokio::test]
async fn a_program_that_ignores_the_end_of_its_input_is_killed() {
    let (data, sandbox) = with_accounts(10, &by_command("python3 stubborn.py", "")).await;
    ended_alone(&sandbox, sandbox.spawn("run RAISE --concurrency 1")).await.ok();
    data.raised_once(10).await;
    assert!(!notes(&sandbox, "ended").is_empty(), "its input was closed");
}

#[tokio::test]
async fn the_children_of_a_program_end_with_it() {
    let (_data, sandbox) = with_accounts(10, &by_command("sh helpers.sh", "")).await;
    let output = ended_alone(&sandbox, sandbox.spawn("run RAISE --concurrency 1")).await.ok();
    assert!(output.stdout.contains("10 processed"), "{}", output.stdout);
    assert!(!notes(&sandbox, "helpers").is_empty());
    assert!(!notes(&sandbox, "ended").is_empty(), "the shell saw the end of its input");
}

#[tokio::test]
async fn the_children_of_a_dead_program_end_too() {
    let more = "retry = { attempts = 3, backoff = \"10ms\" }\n";
    let (_data, sandbox) = with_accounts(10, &by_command("sh helpers.sh 7", more)).await;
    let worker = sandbox.spawn("worker --concurrency 1");
    let id = sandbox.submit("RAISE").await;
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["dead"], 1, "{job:#}");
    // The shell is dead, although its helper holds its output open.
    let error = text(&letters(&sandbox, &id).await[0]["error"]);
    assert!(error.contains("exited with code 3"), "{error}");
    // Many programs died. While the worker continues, at most the helper of the last one is left.
    let helpers = notes(&sandbox, "helpers").len();
    assert!(helpers > 4, "only {helpers} were started");
    eventually("all helpers but one are gone", async || {
        programs(&sandbox).iter().filter(|program| program.line == "sleep 3600").count() <= 1
    })
    .await;
    drop(worker);
    nothing_runs_soon(&sandbox).await;
}

fn hanging() -> String {
    by_command("python3 poison.py hangs=1", "step.timeout = \"2s\"\n")
}

/// Waits until a program of the sandbox works on a batch.
async fn at_work(sandbox: &CliSandbox) {
    eventually("a program works on a batch", async || !batches(sandbox).is_empty()).await;
}

/// Kills a process that has programs. Asserts that they and all their children end soon.
/// else it has started.
async fn leaves_nothing(sandbox: &CliSandbox, process: Running) {
    let started = children_of(process.id());
    assert!(!programs(sandbox).is_empty() && !started.is_empty());
    process.kill9();
    nothing_runs_soon(sandbox).await;
    let gone = async || !started.iter().any(Descendant::is_running);
    eventually(&format!("all of {started:?} are gone"), gone).await;
}

#[tokio::test]
async fn a_program_that_hangs_dies_with_a_killed_worker() {
    let jobs = hanging().replace("\"2s\"", "\"70s\"");
    let (data, sandbox) = with_accounts(5, &jobs).await;
    let _id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 2");
    at_work(&sandbox).await;
    leaves_nothing(&sandbox, worker).await;
    data.untouched().await;
}

/// A worker that has completed a job and still runs.
async fn worker_of_a_completed_job(sandbox: &CliSandbox, concurrency: u32) -> Running {
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn(&format!("worker --concurrency {concurrency}"));
    sandbox.completed(&id).await;
    worker
}

#[tokio::test]
async fn a_program_that_ignores_every_signal_dies_with_a_killed_worker() {
    let (_data, sandbox) = with_accounts(5, &by_command("python3 stubborn.py", "")).await;
    let worker = worker_of_a_completed_job(&sandbox, 1).await;
    leaves_nothing(&sandbox, worker).await;
}

#[tokio::test]
async fn the_children_of_a_program_die_with_a_killed_worker() {
    let (_data, sandbox) = with_accounts(5, &by_command("sh helpers.sh", "")).await;
    let worker = worker_of_a_completed_job(&sandbox, 2).await;
    let helper = |line: &str| line == "sleep 3600";
    assert!(programs(&sandbox).iter().any(|program| helper(&program.line)));
    leaves_nothing(&sandbox, worker).await;
}

#[tokio::test]
async fn a_killed_run_leaves_no_processes() {
    let jobs = hanging().replace("\"2s\"", "\"70s\"");
    let (_data, sandbox) = with_accounts(5, &jobs).await;
    let run = sandbox.spawn("run RAISE");
    at_work(&sandbox).await;
    leaves_nothing(&sandbox, run).await;
}
