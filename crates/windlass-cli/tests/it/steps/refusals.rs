//! Services that refuse a batch because of its items, or every request. The first makes dead letters, the second pauses
//! the job.

use crate::common::{CliSandbox, Data, eventually, parse, refused, text};
use crate::steps::fixture::{
    TWO_TRIES, by_service, items, keys, letters, paused_by, raised_but, with_accounts,
};
use crate::steps::server::Server;
use serde_json::Value as Json;

const ROWS: i64 = 20;
const CHUNKS: &str = "chunk.items = 5\n";

/// Runs a job with this behaviour. Asserts that the letters have these keys and that the other accounts are raised.
/// Returns the letters.
async fn letters_of(server: &Server, behaviour: &str, dead: &[i64]) -> Vec<Json> {
    let timeout = if behaviour.starts_with("silent") { "2s" } else { "60s" };
    let more = format!("step.timeout = \"{timeout}\"\n{TWO_TRIES}");
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), &more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    let id = text(&job["id"]);
    let letters = letters(&sandbox, &id).await;
    assert_eq!(keys(&letters), dead, "{behaviour}: {job:#}");
    raised_but(&data, ROWS, dead).await;
    sandbox.prove(&id).await;
    letters
}

/// Asserts that account 7 becomes a dead letter after this many attempts, with an error that contains this text.
/// Returns the error.
async fn dead_after(attempts: u32, server: &Server, behaviour: &str, contains: &str) -> String {
    let letters = letters_of(server, behaviour, &[7]).await;
    assert_eq!(letters[0]["attempts"], attempts, "{:#}", letters[0]);
    let error = text(&letters[0]["error"]);
    assert!(error.contains(contains), "{:#}", letters[0]);
    error
}

#[tokio::test]
async fn a_permanently_refused_batch_is_halved_to_the_items_that_cause_it() {
    let server = Server::start().await;
    for status in ["400", "409", "413", "422"] {
        let behaviour = format!("reject={status}:7,13");
        for letter in letters_of(&server, &behaviour, &[7, 13]).await {
            assert_eq!(letter["attempts"], 1, "{letter:#}");
            assert!(text(&letter["error"]).contains(status), "{letter:#}");
        }
    }
    let first = &server.batches()[0];
    assert_eq!(items(&first["batch"]).len(), ROWS as usize);
}

#[tokio::test]
async fn a_batch_refused_with_an_authorisation_status_is_blamed_on_items_if_an_empty_batch_is_accepted()
 {
    let server = Server::start().await;
    for status in ["401", "403", "404", "405", "407"] {
        dead_after(1, &server, &format!("reject={status}:7"), status).await;
    }
}

#[tokio::test]
async fn an_item_that_fails_the_service_is_retried_and_then_dead() {
    let server = Server::start().await;
    for status in ["408", "425", "429", "500", "503"] {
        dead_after(2, &server, &format!("reject={status}:7"), status).await;
    }
}

#[tokio::test]
async fn a_malformed_answer_halves_the_batch() {
    let server = Server::start().await;
    dead_after(2, &server, "rubbish=7", "Please sign in").await;
}

#[tokio::test]
async fn an_item_without_an_answer_becomes_a_dead_letter() {
    let server = Server::start().await;
    dead_after(2, &server, "silent=7", "time").await;
}

#[tokio::test]
async fn an_item_that_makes_the_service_close_the_connection_becomes_a_dead_letter() {
    let server = Server::start().await;
    let error = dead_after(2, &server, "drop=7", "").await;
    assert!(!error.is_empty());
}

/// Works a job of a service that refuses every request. It must be paused for this reason without any change.
async fn paused(server: &Server, behaviour: &str, reason: &[&str]) -> (Data, CliSandbox, String) {
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), "")).await;
    // `run` detects the problem before it submits a job.
    refused(&sandbox.run("run RAISE").await, &[&["step.http"], reason].concat());
    assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));

    let id = sandbox.submit("RAISE").await;
    let output = sandbox.run(&format!("worker --job {id} --json")).await;
    paused_by(&output, reason);
    assert!(letters(&sandbox, &id).await.is_empty());
    data.untouched().await;
    (data, sandbox, id)
}

#[tokio::test]
async fn a_service_that_refuses_every_request_pauses_the_job() {
    let server = Server::start().await;
    for status in ["401", "403", "404", "405", "407"] {
        server.put("closed");
        let behaviour = format!("during=closed:{status}");
        let (data, sandbox, id) = paused(&server, &behaviour, &[status]).await;

        // After a repair, the job continues.
        server.remove("closed");
        sandbox.run(&format!("resume {id}")).await.ok();
        sandbox.run(&format!("worker --job {id}")).await.ok();
        data.raised_once(ROWS).await;
    }
}

#[tokio::test]
async fn a_redirect_pauses_the_job_and_is_not_followed() {
    let server = Server::start().await;
    for status in ["301", "302", "303", "307", "308"] {
        paused(&server, &format!("redirect={status}"), &[status, "final URL"]).await;
    }
    let followed = server.requests().iter().any(|request| request["path"] == "/elsewhere");
    assert!(!followed);
}

#[tokio::test]
async fn a_service_that_starts_to_refuse_pauses_the_running_job() {
    let server = Server::start().await;
    server.put("hold");
    let behaviour = "during=closed:404&wait=hold";
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), CHUNKS)).await;
    let run = sandbox.spawn("run RAISE --concurrency 1 --json");
    eventually("the first batch is being processed", async || !server.batches().is_empty()).await;
    server.put("closed");
    server.remove("hold");
    let job = paused_by(&run.wait().await, &["404"]);
    assert_eq!(job["items"]["processed"], 5, "{job:#}");

    server.remove("closed");
    let id = text(&job["id"]);
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}
