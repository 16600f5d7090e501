//! Jobs that fail, and servers that raise alerts.

use crate::common::{CliSandbox, Data, job, text};
use serde_json::Value as Json;
use windlass_testkit::Running;

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// The part of the webhook URL that must stay secret.
pub(crate) const HIDDEN: &str = "hook-7f3a";

/// An `[alerts]` table with a webhook on this port.
pub(crate) fn alerts(port: u16, more: &str) -> String {
    format!(
        "\n[alerts]\nwebhook = \"http://127.0.0.1:{port}/{HIDDEN}\"\nsecret = \"{SECRET}\"\n{more}\n"
    )
}

/// A job type whose items all fail, so that it exceeds its budget, one that succeeds, and one whose table can be changed
/// so that it fails.
pub(crate) fn jobs() -> String {
    let fails = "[jobs.FAIL]\nsource.connection = \"app\"\nsource.table = \"lines\"\n\
                 step.sql = \"UPDATE lines SET amount = amount + 1 WHERE {chunk}\"\n";
    let breaks =
        job("BREAK", "UPDATE accounts SET amount = 1 / (amount - amount) WHERE {chunk}", 10);
    let raises = job("RAISE", "UPDATE accounts SET amount = amount + 1 WHERE {chunk}", 10);
    format!("{breaks}failures = {{ budget = 0, on_exceeded = \"fail\" }}\n{raises}{fails}")
}

/// A job type whose handler no worker has.
pub(crate) fn unworkable(more: &str) -> String {
    format!(
        "[jobs.WAIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.handler = \"missing\"\nstep.version = \"version\"\n{more}\n"
    )
}

pub(crate) async fn sandbox(data: &Data, port: u16, more: &str) -> CliSandbox {
    CliSandbox::on(data, &(jobs() + more + &alerts(port, "dead_letters = 1")))
}

pub(crate) fn serve(sandbox: &CliSandbox) -> Running {
    sandbox.spawn("serve --listen 127.0.0.1:0 --concurrency 2")
}

/// The alerts that the command lists.
pub(crate) async fn listed(sandbox: &CliSandbox) -> Vec<Json> {
    sandbox.json("alerts --limit 1000").await.as_array().unwrap().clone()
}

/// The kinds of all alerts, sorted.
pub(crate) async fn kinds(sandbox: &CliSandbox) -> Vec<String> {
    let mut kinds: Vec<_> =
        listed(sandbox).await.iter().map(|alert| text(&alert["kind"])).collect();
    kinds.sort();
    kinds
}

/// Submits a job that fails because a column of its table is renamed, and waits for its end.
pub(crate) async fn fail_one(sandbox: &CliSandbox, data: &Data) -> String {
    data.run("CREATE TABLE lines (id bigint PRIMARY KEY NOT NULL, amount bigint NOT NULL)").await;
    data.run("INSERT INTO lines VALUES (1, 1)").await;
    sandbox.run("stop FAIL").await.ok();
    let id = sandbox.submit("FAIL").await;
    data.run("ALTER TABLE lines RENAME COLUMN amount TO total").await;
    sandbox.run("start FAIL").await.ok();
    sandbox.until(&id, "FAILED", |job| job["status"] == "FAILED").await;
    id
}

/// Submits a job that exceeds its budget, and waits for its end.
pub(crate) async fn break_one(sandbox: &CliSandbox) -> String {
    // With one chunk the counts are deterministic: the job fails with the first chunk over budget.
    let id = sandbox.submit("BREAK --parallel-segments 1").await;
    sandbox.until(&id, "FAILED", |job| job["status"] == "FAILED").await;
    id
}
