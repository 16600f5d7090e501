//! Shared by these tests: job types with a command or a service, the programs, and their notes.

use crate::common::{CliSandbox, Data, eventually, parse, text};
use serde_json::Value as Json;
use windlass_testkit::{Descendant, Output, descendants_in};

/// The programs by name. Every sandbox has all of them.
const CHILDREN: [(&str, &str); 11] = [
    ("handler.py", include_str!("children/handler.py")),
    ("raise.py", include_str!("children/raise.py")),
    ("poison.py", include_str!("children/poison.py")),
    ("flaky.py", include_str!("children/flaky.py")),
    ("outcomes.py", include_str!("children/outcomes.py")),
    ("echo.py", include_str!("children/echo.py")),
    ("partial.py", include_str!("children/partial.py")),
    ("stubborn.py", include_str!("children/stubborn.py")),
    ("helpers.sh", include_str!("children/helpers.sh")),
    ("environment.sh", include_str!("children/environment.sh")),
    ("controls.py", include_str!("children/controls.py")),
];

/// Few tries with short delays.
pub(crate) const TWO_TRIES: &str = "retry = { attempts = 2, backoff = \"10ms\" }\n";

/// A job type RAISE on `accounts` whose step is this command, with arguments separated by spaces.
pub(crate) fn by_command(command: &str, more: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    raise(&format!("step.command = {}\n{more}", serde_json::to_string(&words).unwrap()))
}

/// A job type RAISE on `accounts` whose step is the service at this URL.
pub(crate) fn by_service(url: &str, more: &str) -> String {
    raise(&format!("step.http = \"{url}\"\n{more}"))
}

fn raise(step: &str) -> String {
    format!(
        "[jobs.RAISE]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.version = \"version\"\n{step}"
    )
}

/// A sandbox with these job types and all programs.
pub(crate) fn sandbox(data: &Data, jobs: &str) -> CliSandbox {
    let sandbox = CliSandbox::on(data, jobs);
    for (name, text) in CHILDREN {
        sandbox.write(name, text);
    }
    sandbox
}

/// A sandbox, and the table `accounts` in a SQLite file.
pub(crate) async fn with_accounts(rows: i64, jobs: &str) -> (Data, CliSandbox) {
    let data = Data::sqlite().with_accounts(rows).await;
    let sandbox = sandbox(&data, jobs);
    (data, sandbox)
}

/// The lines of a file in which programs make notes.
pub(crate) fn notes(sandbox: &CliSandbox, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.path(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The batches with items that programs received.
pub(crate) fn batches(sandbox: &CliSandbox) -> Vec<Json> {
    let lines = notes(sandbox, "batches.jsonl");
    let all = lines.iter().map(|line| serde_json::from_str::<Json>(line).unwrap());
    all.filter(|batch| !items(batch).is_empty()).collect()
}

/// The items of a batch.
pub(crate) fn items(batch: &Json) -> &[Json] {
    batch["items"].as_array().unwrap()
}

/// The dead letters of a job, by key.
pub(crate) async fn letters(sandbox: &CliSandbox, job: &str) -> Vec<Json> {
    let listed = sandbox.json(&format!("dead list --job {job}")).await;
    let mut letters = listed.as_array().unwrap().clone();
    letters.sort_by_key(|letter| letter["key"].as_i64());
    letters
}

/// The keys of dead letters.
pub(crate) fn keys(letters: &[Json]) -> Vec<i64> {
    letters.iter().map(|letter| letter["key"].as_i64().unwrap()).collect()
}

/// Asserts that `rows` accounts were raised once and that these were not changed.
pub(crate) async fn raised_but(data: &Data, rows: i64, left: &[i64]) {
    let raised = rows - left.len() as i64;
    data.raised_once(raised).await;
    let list: Vec<String> = left.iter().map(i64::to_string).collect();
    let untouched = format!(
        "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 AND version = 1 AND id IN ({})",
        list.join(", ")
    );
    assert_eq!(data.number(&untouched).await, left.len() as i64, "unchanged accounts");
}

/// The processes in the sandbox's folder: programs and their children.
pub(crate) fn programs(sandbox: &CliSandbox) -> Vec<Descendant> {
    let mut found = descendants_in(&sandbox.path("."));
    found.retain(|process| !process.line.starts_with(crate::common::BINARY));
    found
}

/// Waits until no process runs in the sandbox's folder.
pub(crate) async fn nothing_runs_soon(sandbox: &CliSandbox) {
    let gone = async || descendants_in(&sandbox.path(".")).is_empty();
    eventually("every process in the folder is gone", gone).await;
}

/// Asserts that a command ended because the job was paused for this reason, without a dead letter. Returns the job.
#[track_caller]
pub(crate) fn paused_by(output: &Output, reason: &[&str]) -> Json {
    assert_eq!(output.code, Some(4), "{output:?}");
    let job = parse(output);
    assert_eq!(job["status"], "PAUSED", "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    for part in reason {
        assert!(text(&job["error"]).contains(part), "`{part}` is not in {job:#}");
    }
    job
}

/// Whether a job waits for its program or service: still running, with the reason.
pub(crate) fn is_held(job: &Json) -> bool {
    job["status"] == "PROCESSING" && job["error"].is_string()
}
