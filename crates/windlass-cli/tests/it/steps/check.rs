//! `windlass check` sends an empty batch to programs and services and reports the result.

use crate::common::{CliSandbox, parse, printed, refused, text};
use crate::steps::fixture::{by_command, by_service, notes, nothing_runs_soon, with_accounts};
use crate::steps::server::{Server, url};
use windlass_testkit::free_port;

/// Asserts that the job type is refused with a problem of this field that contains this word.
async fn names(sandbox: &CliSandbox, field: &str, word: &str) {
    refused(&sandbox.run("check").await, &["windlass.toml", "line 7", field, word]);
    let output = sandbox.run("check --json").await;
    assert_eq!(output.code, Some(2), "{output:?}");
    let json = parse(&output);
    assert_eq!(json["ok"], false, "{json:#}");
    assert_eq!(json["problems"][0]["field"], format!("jobs.RAISE.{field}"), "{json:#}");
    assert!(text(&json["problems"][0]["detail"]).contains(word), "{json:#}");
    nothing_runs_soon(sandbox).await;
}

#[tokio::test]
async fn a_program_that_answers_passes_the_check() {
    let (data, sandbox) = with_accounts(5, &by_command("python3 raise.py", "")).await;
    let output = sandbox.run("check").await.ok();
    printed(
        &output,
        &["RAISE", "python3 raise.py", "empty batch", "at least once", "no problems found"],
    );
    let batches = notes(&sandbox, "batches.jsonl");
    assert!(!batches.is_empty());
    assert!(batches.iter().all(|batch| batch.contains("\"items\":[]")), "{batches:?}");
    assert_eq!(notes(&sandbox, "ended").len(), notes(&sandbox, "started").len());
    let json = sandbox.json("check").await;
    assert_eq!(json["ok"], true, "{json:#}");
    let command = serde_json::json!(["python3", "raise.py"]);
    assert_eq!(json["jobTypes"][0]["definition"]["step"]["command"], command);
    nothing_runs_soon(&sandbox).await;
    data.untouched().await;
}

#[tokio::test]
async fn a_service_that_answers_passes_the_check() {
    let server = Server::start().await;
    let (data, sandbox) = with_accounts(5, &by_service(&server.url(""), "")).await;
    let output = sandbox.run("check").await.ok();
    printed(
        &output,
        &["RAISE", &server.url(""), "empty batch", "at least once", "no problems found"],
    );
    assert!(!server.requests().is_empty());
    assert!(server.batches().is_empty(), "only empty batches were sent");
    data.untouched().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_reported() {
    let (_data, sandbox) = with_accounts(5, &by_command("./no-such-program", "")).await;
    names(&sandbox, "step.command", "no-such-program").await;
}

#[tokio::test]
async fn a_program_that_exits_at_once_is_reported_with_its_output() {
    let (_data, sandbox) = with_accounts(5, &by_command("python3 no-such-script.py", "")).await;
    names(&sandbox, "step.command", "no-such-script.py").await;
}

#[tokio::test]
async fn a_program_that_does_not_answer_is_reported() {
    let jobs = by_command("sleep 3600", "step.timeout = \"1s\"\n");
    let (_data, sandbox) = with_accounts(5, &jobs).await;
    names(&sandbox, "step.command", "1s").await;
}

#[tokio::test]
async fn an_unreachable_service_is_reported() {
    let (_data, sandbox) = with_accounts(5, &by_service(&url(free_port(), ""), "")).await;
    names(&sandbox, "step.http", "refused").await;
}

#[tokio::test]
async fn a_service_that_refuses_is_reported() {
    let server = Server::start().await;
    for status in ["401", "404", "500", "307"] {
        let behaviour = if status == "307" { "redirect" } else { "always" };
        let jobs = by_service(&server.url(&format!("{behaviour}={status}")), "");
        let (_data, sandbox) = with_accounts(5, &jobs).await;
        names(&sandbox, "step.http", status).await;
    }
}

#[tokio::test]
async fn one_wrong_job_type_does_not_hide_the_others() {
    let right = by_command("python3 raise.py", "");
    let wrong = by_command("./no-such-program", "").replace("RAISE", "LOWER");
    let (_data, sandbox) = with_accounts(5, &(right + &wrong)).await;
    let output = sandbox.run("check").await;
    refused(&output, &["RAISE\n", "LOWER", "no-such-program", "1 problem found"]);
}
