//! A place where things go wrong, and servers that say so.

use crate::common::{CliSandbox, Data, job, text};
use serde_json::Value as Json;
use windlass_testkit::Running;

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Part of the URL that nobody but the receiver is to see.
pub(crate) const HIDDEN: &str = "hook-7f3a";

/// `[alerts]` that are posted to this port.
pub(crate) fn alerts(port: u16, more: &str) -> String {
    format!(
        "\n[alerts]\nwebhook = \"http://127.0.0.1:{port}/{HIDDEN}\"\nsecret = \"{SECRET}\"\n{more}\n"
    )
}

/// A job type of which every item dies and which fails by its budget, and one that goes well.
pub(crate) fn jobs() -> String {
    let breaks =
        job("BREAK", "UPDATE accounts SET amount = 1 / (amount - amount) WHERE {chunk}", 10);
    let raises = job("RAISE", "UPDATE accounts SET amount = amount + 1 WHERE {chunk}", 10);
    format!("{breaks}failures = {{ budget = 0, on_exceeded = \"fail\" }}\n{raises}")
}

/// A job type that no process here can work.
pub(crate) fn unworkable(more: &str) -> String {
    format!(
        "[jobs.WAIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.handler = \"nobody\"\nstep.version = \"version\"\n{more}\n"
    )
}

pub(crate) async fn sandbox(data: &Data, port: u16, more: &str) -> CliSandbox {
    CliSandbox::on(data, &(jobs() + more + &alerts(port, "dead_letters = 1\nno_worker = \"1s\"")))
}

pub(crate) fn serve(sandbox: &CliSandbox) -> Running {
    sandbox.spawn("serve --listen 127.0.0.1:0 --concurrency 2")
}

/// The alerts as the command lists them.
pub(crate) async fn listed(sandbox: &CliSandbox) -> Vec<Json> {
    sandbox.json("alerts --limit 1000").await.as_array().unwrap().clone()
}

/// The kinds of all alerts, in order of their names.
pub(crate) async fn kinds(sandbox: &CliSandbox) -> Vec<String> {
    let mut kinds: Vec<_> =
        listed(sandbox).await.iter().map(|alert| text(&alert["kind"])).collect();
    kinds.sort();
    kinds
}

/// Submits a job that fails, and waits until it has.
pub(crate) async fn break_one(sandbox: &CliSandbox) -> String {
    // One chunk: the job fails with the first that exceeds its budget, whatever the others come to.
    let id = sandbox.submit("BREAK --parallel-segments 1").await;
    sandbox.until(&id, "FAILED", |job| job["status"] == "FAILED").await;
    id
}
