//! Services that refuse: one batch for the items in it, or everybody. What is an item's fault makes
//! a dead letter, what is not pauses the job.

use crate::common::{CliSandbox, eventually, parse, refused, text};
use crate::steps::fixture::{
    TWO_TRIES, by_service, items, keys, letters, raised_but, with_accounts,
};
use crate::steps::server::Server;
use serde_json::Value as Json;

const ROWS: i64 = 20;
const CHUNKS: &str = "chunk.items = 5\n";

/// Runs a job with this behaviour and gives its letters, which must be of these keys; the other
/// accounts are raised.
async fn letters_of(server: &Server, behaviour: &str, dead: &[i64]) -> Vec<Json> {
    let more = format!("step.timeout = \"2s\"\n{TWO_TRIES}");
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), &more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.ok());
    let id = text(&job["id"]);
    let letters = letters(&sandbox, &id).await;
    assert_eq!(keys(&letters), dead, "{behaviour}: {job:#}");
    raised_but(&data, ROWS, dead).await;
    sandbox.prove(&id).await;
    letters
}

#[tokio::test]
async fn a_batch_refused_for_good_is_halved_to_the_items_that_cause_it() {
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
async fn a_batch_refused_as_if_the_caller_were_is_the_items_fault_when_an_empty_one_is_not() {
    let server = Server::start().await;
    for status in ["401", "403", "404", "405", "407"] {
        let letters = letters_of(&server, &format!("reject={status}:7"), &[7]).await;
        assert_eq!(letters[0]["attempts"], 1, "{:#}", letters[0]);
        assert!(text(&letters[0]["error"]).contains(status), "{:#}", letters[0]);
    }
}

#[tokio::test]
async fn an_item_that_breaks_the_service_is_tried_again_and_then_dead() {
    let server = Server::start().await;
    for status in ["408", "425", "429", "500", "503"] {
        let letters = letters_of(&server, &format!("reject={status}:7"), &[7]).await;
        assert_eq!(letters[0]["attempts"], 2, "{:#}", letters[0]);
        assert!(text(&letters[0]["error"]).contains(status), "{:#}", letters[0]);
    }
}

#[tokio::test]
async fn an_answer_that_is_none_halves_the_batch() {
    let server = Server::start().await;
    let letters = letters_of(&server, "rubbish=7", &[7]).await;
    assert_eq!(letters[0]["attempts"], 2, "{:#}", letters[0]);
    assert!(text(&letters[0]["error"]).contains("All is well"), "{:#}", letters[0]);
}

#[tokio::test]
async fn an_item_that_the_service_never_answers_for_is_dead_in_the_end() {
    let server = Server::start().await;
    let letters = letters_of(&server, "silent=7", &[7]).await;
    assert_eq!(letters[0]["attempts"], 2, "{:#}", letters[0]);
    assert!(text(&letters[0]["error"]).contains("time"), "{:#}", letters[0]);
}

#[tokio::test]
async fn an_item_that_makes_the_service_hang_up_is_dead_in_the_end() {
    let server = Server::start().await;
    let letters = letters_of(&server, "drop=7", &[7]).await;
    assert_eq!(letters[0]["attempts"], 2, "{:#}", letters[0]);
    assert!(!text(&letters[0]["error"]).is_empty());
}

/// Works a job, which must be paused for this reason with nothing done; gives its id.
async fn paused(sandbox: &CliSandbox, reason: &[&str]) -> String {
    // Before there is a job, `run` sees for itself that there is no use.
    refused(&sandbox.run("run RAISE").await, &[&["step.http"], reason].concat());
    assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));

    let id = sandbox.submit("RAISE").await;
    let output = sandbox.run(&format!("worker --job {id} --json")).await;
    assert_eq!(output.code, Some(4), "{output:?}");
    let job = parse(&output);
    assert_eq!(job["status"], "PAUSED", "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    assert!(letters(sandbox, &id).await.is_empty());
    for part in reason {
        assert!(text(&job["error"]).contains(part), "`{part}` is not in {job:#}");
    }
    id
}

#[tokio::test]
async fn a_service_that_refuses_everybody_pauses_the_job() {
    let server = Server::start().await;
    for status in ["401", "403", "404", "405", "407"] {
        let jobs = by_service(&server.url(&format!("during=closed:{status}")), "");
        let (data, sandbox) = with_accounts(ROWS, &jobs).await;
        server.put("closed");
        let id = paused(&sandbox, &[status]).await;
        data.untouched().await;

        // What was wrong is mended, and the job goes on.
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
        let jobs = by_service(&server.url(&format!("redirect={status}")), "");
        let (data, sandbox) = with_accounts(ROWS, &jobs).await;
        paused(&sandbox, &[status, "final URL"]).await;
        data.untouched().await;
    }
    let followed = server.requests().iter().any(|request| request["path"] == "/elsewhere");
    assert!(!followed);
}

#[tokio::test]
async fn a_service_that_closes_in_the_middle_pauses_the_job_that_runs() {
    let server = Server::start().await;
    server.put("hold");
    let behaviour = "during=closed:404&wait=hold";
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), CHUNKS)).await;
    let run = sandbox.spawn("run RAISE --concurrency 1 --json");
    eventually("the first batch is under way", async || !server.batches().is_empty()).await;
    server.put("closed");
    server.remove("hold");
    let output = run.wait().await;
    assert_eq!(output.code, Some(4), "{output:?}");
    let job = parse(&output);
    assert_eq!(job["status"], "PAUSED", "{job:#}");
    assert!(text(&job["error"]).contains("404"), "{job:#}");
    assert_eq!(job["items"]["processed"], 5, "{job:#}");
    assert_eq!(job["items"]["dead"], 0, "{job:#}");

    server.remove("closed");
    let id = text(&job["id"]);
    sandbox.run(&format!("resume {id}")).await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(ROWS).await;
    sandbox.prove(&id).await;
}
