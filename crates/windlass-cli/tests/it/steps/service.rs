//! Calls of a working service: requests, connections, concurrency, and the forms of a successful
//! answer.

use crate::common::{eventually, parse, text};
use crate::steps::fixture::{TWO_TRIES, by_service, is_held, items, keys, letters, with_accounts};
use crate::steps::server::Server;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;

fn numbers(requests: &[Json], field: &str) -> Vec<i64> {
    requests.iter().map(|request| request[field].as_i64().unwrap()).collect()
}

/// Runs a job with this concurrency. Returns how many requests were in flight at once.
async fn most_in_flight(
    server: &Server,
    behaviour: &str,
    more: &str,
    concurrency: u32,
) -> Option<i64> {
    let (data, sandbox) = with_accounts(200, &by_service(&server.url(behaviour), more)).await;
    sandbox.run(&format!("run RAISE --concurrency {concurrency}")).await.ok();
    data.raised_once(200).await;
    numbers(&server.batches(), "flying").into_iter().max()
}

#[tokio::test]
async fn a_batch_is_one_post_with_the_documented_headers_and_fields() {
    let server = Server::start().await;
    let more = "step.headers = { Authorization = \"Bearer ${ENRICH_TOKEN}\", X-Plain = \"yes\" }\n";
    let (data, sandbox) = with_accounts(3, &by_service(&server.url(""), more)).await;
    let sandbox = sandbox.env("ENRICH_TOKEN", "a-token");
    let job = parse(&sandbox.run("run RAISE --param month=2025-01 --json").await.ok());
    data.raised_once(3).await;
    let [request] = <[_; 1]>::try_from(server.batches()).unwrap();
    assert_eq!(request["method"], "POST");
    let headers = &request["headers"];
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["authorization"], "Bearer a-token");
    assert_eq!(headers["x-plain"], "yes");
    assert!(!text(&headers["idempotency-key"]).is_empty());
    let batch = &request["batch"];
    assert_eq!(batch["jobId"], job["id"]);
    assert_eq!(batch["jobType"], "RAISE");
    assert_eq!(batch["params"], json!({"month": "2025-01"}));
    assert_eq!(batch["dryRun"], false);
    let record = json!({"id": 2, "branch": 2, "amount": 14, "owner": "owner 2", "version": 1});
    assert_eq!(items(batch)[1]["record"], record);
    assert_eq!(items(batch)[1]["key"], 2);
    sandbox.prove(&text(&job["id"])).await;
}

#[tokio::test]
async fn connections_are_kept_alive() {
    let server = Server::start().await;
    let jobs = by_service(&server.url(""), "chunk.commit = 5\n");
    let (data, sandbox) = with_accounts(200, &jobs).await;
    sandbox.run("run RAISE --concurrency 1").await.ok();
    data.raised_once(200).await;
    let requests = server.batches();
    assert_eq!(requests.len(), 40);
    let clients: BTreeSet<i64> = numbers(&requests, "client").into_iter().collect();
    assert!(clients.len() <= 2, "{} connections for 40 requests", clients.len());
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_the_step_allows() {
    let server = Server::start().await;
    // The service answers only when two requests have arrived, and then waits for a third.
    let more = "step.concurrency = 2\nchunk.items = 10\nchunk.commit = 5\n";
    assert_eq!(most_in_flight(&server, "gather=2", more, 6).await, Some(2));
}

#[tokio::test]
async fn each_slot_may_have_a_request_in_flight() {
    let server = Server::start().await;
    let more = "chunk.items = 10\nchunk.commit = 5\n";
    assert_eq!(most_in_flight(&server, "gather=3", more, 3).await, Some(3));
}

#[tokio::test]
async fn an_answer_without_a_body_means_success_for_all_items() {
    let server = Server::start().await;
    for status in ["200", "202", "204"] {
        let jobs = by_service(&server.url(&format!("bare={status}")), "");
        let (data, sandbox) = with_accounts(20, &jobs).await;
        let job = parse(&sandbox.run("run RAISE --json").await.ok());
        assert_eq!(job["items"]["processed"], 20, "{status}: {job:#}");
        let same = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000";
        assert_eq!(data.number(same).await, 20);
    }
}

#[tokio::test]
async fn items_in_batch_item_failures_are_retried() {
    let server = Server::start().await;
    let jobs = by_service(&server.url("failures=1:3,9"), TWO_TRIES);
    let (_data, sandbox) = with_accounts(20, &jobs).await;
    let job = parse(&sandbox.run("run RAISE --json").await.ok());
    assert_eq!(job["items"]["processed"], 20, "{job:#}");
    let sent = server.batches();
    let second = sent.iter().flat_map(|request| items(&request["batch"]));
    let mut second: Vec<i64> = second
        .filter(|item| item["attempt"] == 2)
        .map(|item| item["key"].as_i64().unwrap())
        .collect();
    second.sort_unstable();
    assert_eq!(second, [3, 9]);

    let jobs = by_service(&server.url("failures=9:4"), TWO_TRIES);
    let (_data, sandbox) = with_accounts(20, &jobs).await;
    let job = parse(&sandbox.run("run RAISE --json").await.with_dead_letters());
    let letters = letters(&sandbox, &text(&job["id"])).await;
    assert_eq!(keys(&letters), [4]);
    assert_eq!(letters[0]["attempts"], 2);
}

#[tokio::test]
async fn retry_after_is_respected() {
    let server = Server::start().await;
    let more = "retry = { attempts = 3, backoff = \"10ms\" }\n";
    let (data, sandbox) = with_accounts(10, &by_service(&server.url("first=429:1:1"), more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.ok());
    assert_eq!(job["items"]["processed"], 10, "{job:#}");
    data.raised_once(10).await;
    let [busy, next] = <[_; 2]>::try_from(server.batches()).unwrap();
    let answer = &server.answers()[&busy["number"].as_i64().unwrap()];
    assert_eq!(answer["status"], 429);
    let waited = next["at"].as_f64().unwrap() - answer["at"].as_f64().unwrap();
    assert!(waited >= 1.0, "retried after {waited} s");
}

#[tokio::test]
async fn a_long_retry_after_is_respected_by_every_worker() {
    let server = Server::start().await;
    server.put("busy");
    let jobs = by_service(&server.url("during=busy:429:6"), "chunk.items = 5\n");
    let (data, sandbox) = with_accounts(100, &jobs).await;
    let id = sandbox.submit("RAISE").await;
    let _workers =
        [sandbox.spawn("worker --concurrency 1"), sandbox.spawn("worker --concurrency 1")];
    sandbox.until(&id, "the job waits and shows the reason", is_held).await;
    server.remove("busy");
    let job = sandbox.completed(&id).await;
    assert_eq!(job["items"]["dead"], 0, "{job:#}");
    data.raised_once(100).await;
    let told = server.answers().into_values().map(|answer| answer["at"].as_f64().unwrap());
    let until = told.reduce(f64::min).unwrap() + 6.0;
    let early = server.batches().into_iter().filter(|sent| sent["at"].as_f64() < Some(until));
    assert!(early.count() <= 2, "each worker had one request in flight, and then none");
}

#[tokio::test]
async fn a_record_changed_meanwhile_is_sent_again() {
    let server = Server::start().await;
    server.put("hold");
    let (data, sandbox) = with_accounts(10, &by_service(&server.url("wait=hold"), "")).await;
    let run = sandbox.spawn("run RAISE --json");
    eventually("the batch is being processed", async || !server.batches().is_empty()).await;
    data.run("UPDATE accounts SET amount = 5000, version = version + 1 WHERE id = 3").await;
    server.remove("hold");
    let job = parse(&run.wait().await.ok());
    assert_eq!(job["items"]["processed"], 10, "{job:#}");
    assert_eq!(job["items"]["conflicts"], 1, "{job:#}");
    let both = "SELECT count(*) FROM accounts WHERE id = 3 AND amount = 5001 AND version = 3";
    assert_eq!(data.number(both).await, 1, "neither change is lost");
    let sent = server.batches();
    let third = sent.iter().flat_map(|request| items(&request["batch"]));
    let third: Vec<&Json> = third.filter(|item| item["key"] == 3).collect();
    assert_eq!(third.len(), 2);
    assert_eq!(third[1]["record"]["amount"], 5000, "the record is read again");
    assert_eq!(third[1]["attempt"], 1, "nothing has failed");
    assert_eq!(third[0]["idempotencyKey"], third[1]["idempotencyKey"]);
}
