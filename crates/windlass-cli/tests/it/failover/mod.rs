//! A database fails over to another server in the middle of a job. With synchronous replication nothing is lost or
//! doubled. With asynchronous replication the last commits are lost, nothing is doubled, and the audit finds it.

mod mariadb;
mod postgres;

use crate::common::{CliSandbox, Data};
use serde_json::Value as Json;
use windlass_testkit::Running;

const ROWS: i64 = 6_000;
/// Chunks of the job.
const CHUNKS: i64 = 60;

/// Submits the job, and starts a worker. Returns when some chunks are completed.
async fn start(sandbox: &CliSandbox, chunks: i64) -> (String, Running) {
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 4");
    worked(sandbox, &id, chunks).await;
    (id, worker)
}

/// Lets the rest of the job be fast. Asserts that the worker, which was not restarted, completes it with every effect once.
async fn is_completed_once(sandbox: &CliSandbox, data: &Data, (id, worker): (String, Running)) {
    data.pace(0.0).await;
    sandbox.completed(&id).await;
    assert!(worker.is_running(), "{}", worker.stderr());
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}

/// Waits until at least this many chunks are completed, and some are at work.
async fn worked(sandbox: &CliSandbox, id: &str, chunks: i64) {
    let is_at_work = |job: &Json| {
        job["chunks"]["completed"].as_i64() >= Some(chunks)
            && job["chunks"]["processing"].as_i64() > Some(0)
    };
    let job = sandbox.until(id, "chunks are completed", is_at_work).await;
    assert!(job["chunks"]["completed"].as_i64() < Some(CHUNKS), "the job was over: {job:#}");
}

/// Waits until more chunks are completed than there are slots, so that some were begun after this call.
async fn worked_on(sandbox: &CliSandbox, id: &str) {
    let done = sandbox.job(id).await["chunks"]["completed"].as_i64().unwrap();
    worked(sandbox, id, done + 8).await;
}

/// Lets the rest of the job be fast. Asserts that it completes, that some effects are lost and none is doubled, and that
/// the audit names what is missing.
async fn has_lost_effects(sandbox: &CliSandbox, data: &Data, id: &str) {
    data.pace(0.0).await;
    sandbox.completed(id).await;
    let once = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
    let more = "SELECT count(*) FROM accounts WHERE amount > id * 7 % 1000 + 1";
    let (once, more) = (data.number(once).await, data.number(more).await);
    assert!(once < ROWS, "no effect is lost");
    assert_eq!(more, 0, "doubled effects");
    let audit = sandbox.run(&format!("audit {id}")).await;
    assert_eq!(audit.code, Some(1), "{audit:?}");
    assert!(audit.stdout.starts_with("NOT PROVEN"), "{}", audit.stdout);
    let names_a_chunk = ["the ledger has no row for chunk ", "the ledger's cursor of chunk "];
    let is_named = names_a_chunk.iter().any(|words| audit.stdout.contains(words));
    assert!(is_named, "{}", audit.stdout);
}
