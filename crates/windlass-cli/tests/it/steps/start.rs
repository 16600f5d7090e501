//! Programs that cannot be started: `run` refuses before it submits, and a worker pauses the job.

use crate::common::{eventually, parse, refused, text};
use crate::steps::fixture::{
    batches, by_command, letters, nothing_runs_soon, paused_by, programs, with_accounts,
};

/// Commands that never answer the first batch, and a word of the reason.
const HOPELESS: [(&str, &str); 4] = [
    ("./no-such-program", "no-such-program"),
    ("python3 no-such-script.py", "no-such-script.py"),
    ("sleep 3600", "1s"),
    ("echo this is no answer", "this is no answer"),
];

/// Short only for the command whose error it is.
fn timeout_of(command: &str) -> String {
    let seconds = if command.starts_with("sleep") { 1 } else { 60 };
    format!("step.timeout = \"{seconds}s\"\n")
}

#[tokio::test]
async fn run_refuses_before_it_submits() {
    for (command, word) in HOPELESS {
        let jobs = by_command(command, &timeout_of(command));
        let (data, sandbox) = with_accounts(5, &jobs).await;
        refused(&sandbox.run("run RAISE").await, &["step.command", word]);
        assert_eq!(sandbox.json("jobs").await, serde_json::json!([]), "{command}");
        refused(&sandbox.run("run RAISE --dry-run").await, &[word]);
        data.untouched().await;
        nothing_runs_soon(&sandbox).await;
    }
}

#[tokio::test]
async fn a_worker_that_cannot_start_the_program_pauses_the_job() {
    for (command, word) in HOPELESS {
        let jobs = by_command(command, &(timeout_of(command) + "chunk.items = 2\n"));
        let (data, sandbox) = with_accounts(10, &jobs).await;
        let id = sandbox.submit("RAISE").await;
        let worked = sandbox.run(&format!("worker --job {id} --json")).await;
        assert_eq!(worked.code, Some(4), "{worked:?}");
        let job = parse(&worked);
        assert_eq!(job["status"], "PAUSED", "{job:#}");
        assert!(text(&job["error"]).contains(word), "{job:#}");
        assert_eq!(job["items"]["dead"], 0, "{job:#}");
        assert!(letters(&sandbox, &id).await.is_empty());
        data.untouched().await;
        nothing_runs_soon(&sandbox).await;
    }
}

#[tokio::test]
async fn a_job_continues_after_the_program_is_repaired_and_resumed() {
    let (data, sandbox) = with_accounts(10, &by_command("python3 late.py", "")).await;
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker");
    let paused = sandbox.until(&id, "PAUSED", |job| job["status"] == "PAUSED").await;
    assert!(text(&paused["error"]).contains("late.py"), "{paused:#}");
    sandbox.write("late.py", include_str!("children/raise.py"));
    sandbox.run(&format!("resume {id}")).await.ok();
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["processed"], 10, "{job:#}");
    assert!(worker.is_running());
    data.raised_once(10).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_restarted_pauses_the_running_job() {
    let jobs = by_command("python3 raise.py 2", "chunk.commit = 5\n");
    let (data, sandbox) = with_accounts(200, &jobs).await;
    let run = sandbox.spawn("run RAISE --concurrency 1 --json");
    eventually("the program works on a batch", async || !batches(&sandbox).is_empty()).await;
    std::fs::remove_file(sandbox.path("raise.py")).unwrap();
    for program in programs(&sandbox) {
        program.kill9();
    }
    let job = paused_by(&run.wait().await, &["raise.py"]);

    sandbox.write("raise.py", include_str!("children/raise.py"));
    sandbox.write("hurry", "");
    let id = text(&job["id"]);
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(200).await;
    sandbox.prove(&id).await;
}
