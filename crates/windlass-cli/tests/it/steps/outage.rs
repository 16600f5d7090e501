//! Unavailable services and programs: nothing becomes a dead letter, the job shows what it waits for, and continues by
//! itself.

use crate::common::{CliSandbox, Data, eventually, text};
use crate::steps::fixture::{TWO_TRIES, by_command, by_service, is_held, letters, with_accounts};
use crate::steps::server::{Server, url};
use serde_json::Value as Json;
use windlass_testkit::free_port;

const ROWS: i64 = 100;
const MORE: &str = "chunk.items = 10\nretry = { attempts = 3, backoff = \"10ms\" }\n";

/// Waits until the job waits with a reason that contains this word, and asserts that nothing is dead.
async fn held(sandbox: &CliSandbox, id: &str, word: &str) -> Json {
    let job = sandbox.until(id, "the job waits and shows the reason", is_held).await;
    assert!(text(&job["error"]).contains(word), "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    job
}

/// Asserts that the job completes with every account raised once and no reason left.
async fn goes_on(data: &Data, sandbox: &CliSandbox, id: &str) {
    let job = sandbox.completed(id).await;
    let rows = data.number("SELECT count(*) FROM accounts").await;
    assert_eq!(job["items"]["processed"], rows, "{job:#}");
    assert_eq!(job["error"], Json::Null, "{job:#}");
    assert!(letters(sandbox, id).await.is_empty());
    data.raised_once(rows).await;
    sandbox.prove(id).await;
}

/// A service that answers with 503 until the file `down` is removed, and a job type that uses it.
async fn down() -> (Server, Data, CliSandbox) {
    let server = Server::start().await;
    server.put("down");
    let jobs = by_service(&server.url("during=down:503"), MORE);
    let (data, sandbox) = with_accounts(ROWS, &jobs).await;
    (server, data, sandbox)
}

#[tokio::test]
async fn a_job_waits_for_a_service_that_is_not_started_yet() {
    let port = free_port();
    let (data, sandbox) = with_accounts(ROWS, &by_service(&url(port, ""), MORE)).await;
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker");
    held(&sandbox, &id, "refused").await;
    data.untouched().await;
    assert!(worker.is_running());
    let _server = Server::start_on(port).await;
    goes_on(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn a_job_waits_for_a_service_that_is_killed() {
    let port = free_port();
    let first = Server::start_on(port).await;
    first.put("stuck");
    let jobs = by_service(&first.url("stick=5:stuck"), MORE);
    let (data, sandbox) = with_accounts(ROWS, &jobs).await;
    let id = sandbox.submit("RAISE").await;
    let _worker = sandbox.spawn("worker --concurrency 2");
    eventually("a request is stuck", async || first.batches().len() >= 5).await;
    first.kill9();
    let job = held(&sandbox, &id, "refused").await;
    let done = job["items"]["processed"].as_i64().unwrap();
    assert!((10..ROWS).contains(&done), "{job:#}");
    let _second = Server::start_on(port).await;
    goes_on(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn a_job_waits_for_a_service_that_answers_with_503() {
    let (server, data, sandbox) = down().await;
    let id = sandbox.submit("RAISE").await;
    let _worker = sandbox.spawn("worker");
    held(&sandbox, &id, "503").await;
    data.untouched().await;
    // The reason stays until the next attempt.
    for look in ["jobs".to_owned(), format!("job {id}")] {
        let says = async || sandbox.run(&look).await.ok().stdout.contains("503");
        eventually(&format!("`windlass {look}` says why the job waits"), says).await;
    }
    server.remove("down");
    goes_on(&data, &sandbox, &id).await;
}

#[tokio::test]
async fn run_waits_for_a_service_and_then_completes() {
    let (server, data, sandbox) = down().await;
    let run = sandbox.spawn("run RAISE");
    eventually("the job waits", async || {
        let jobs = sandbox.json("jobs").await;
        jobs.get(0).is_some_and(is_held)
    })
    .await;
    assert!(run.is_running());
    server.remove("down");
    run.wait().await.ok();
    data.raised_once(ROWS).await;
}

#[tokio::test]
async fn a_job_waits_for_a_program_that_fails_on_everything() {
    // Few items and few tries, so that they would be used up soon.
    let (data, sandbox) = with_accounts(30, &by_command("python3 poison.py", TWO_TRIES)).await;
    sandbox.write("broken", "");
    let id = sandbox.submit("RAISE").await;
    let worker = sandbox.spawn("worker --concurrency 1");
    held(&sandbox, &id, "exit").await;
    // It is tried and suspended again as often as an item has tries, and still nothing is dead.
    eventually("the worker logs four times that the job type is suspended", async || {
        let job = sandbox.job(&id).await;
        assert_eq!((&job["status"], &job["items"]["dead"]), (&"PROCESSING".into(), &0.into()));
        worker.stderr().lines().filter(|line| line.contains("suspended")).count() >= 4
    })
    .await;
    data.untouched().await;
    std::fs::remove_file(sandbox.path("broken")).unwrap();
    goes_on(&data, &sandbox, &id).await;
}
