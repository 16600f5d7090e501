//! Idempotency keys are the same over retries, crashes and redrives, and differ between jobs.

use crate::common::{eventually, parse, text};
use crate::steps::fixture::{by_service, items, keys, letters, with_accounts};
use crate::steps::server::Server;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

const ROWS: i64 = 20;

/// The keys of the items in a request.
fn members(request: &Json) -> Vec<i64> {
    items(&request["batch"]).iter().map(|item| item["key"].as_i64().unwrap()).collect()
}

/// The values of `Idempotency-Key` for each batch of the same items.
fn by_batch(requests: &[Json]) -> BTreeMap<Vec<i64>, Vec<String>> {
    let mut batches: BTreeMap<Vec<i64>, Vec<String>> = BTreeMap::new();
    for request in requests {
        let key = text(&request["headers"]["idempotency-key"]);
        batches.entry(members(request)).or_default().push(key);
    }
    batches
}

/// The values of `idempotencyKey` for each item.
fn by_item(requests: &[Json]) -> BTreeMap<i64, BTreeSet<String>> {
    let mut found: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for item in requests.iter().flat_map(|request| items(&request["batch"])) {
        let key = item["key"].as_i64().unwrap();
        found.entry(key).or_default().insert(text(&item["idempotencyKey"]));
    }
    found
}

/// Asserts that each item has one key in all these requests, and that no two items share one. Returns all keys.
fn one_each(requests: &[Json]) -> BTreeSet<String> {
    let found = by_item(requests);
    assert_eq!(found.len(), ROWS as usize);
    assert!(found.values().all(|keys| keys.len() == 1), "{found:#?}");
    let all: BTreeSet<String> = found.into_values().flatten().collect();
    assert_eq!(all.len(), ROWS as usize, "no two items share a key");
    all
}

#[tokio::test]
async fn a_repeated_batch_has_the_same_idempotency_key() {
    let server = Server::start().await;
    let more = "chunk.commit = 5\nretry = { attempts = 3, backoff = \"10ms\" }\n";
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url("first=503:2"), more)).await;
    sandbox.run("run RAISE --concurrency 1").await.ok();
    data.raised_once(ROWS).await;
    let first = server.batches();
    let batches = by_batch(&first);
    assert_eq!(batches.len(), 4, "{batches:#?}");
    for sent in batches.values() {
        assert_eq!(sent.len(), 3, "two failures and the answer: {batches:#?}");
        assert!(sent.iter().all(|key| key == &sent[0]), "{batches:#?}");
    }
    let own: BTreeSet<&String> = batches.values().map(|sent| &sent[0]).collect();
    assert_eq!(own.len(), 4, "no two batches share a key");

    // Another job on the same records has different keys for batches and items.
    sandbox.run("run RAISE --concurrency 1").await.ok();
    let second: Vec<Json> = server.batches().split_off(first.len());
    assert!(one_each(&first).is_disjoint(&one_each(&second)));
    let other = by_batch(&second);
    assert_eq!(other.len(), 4);
    assert!(other.values().flatten().all(|key| !own.contains(key)));
}

#[tokio::test]
async fn an_item_keeps_its_key_in_retries_crashes_and_redrives() {
    let server = Server::start().await;
    for file in ["hold", "refused"] {
        server.put(file);
    }
    let behaviour = "wait=hold&later=3&refuse=refused:8,15";
    let more = "chunk.lease = \"1s\"\nretry = { attempts = 3, backoff = \"10ms\" }\n";
    let (data, sandbox) = with_accounts(ROWS, &by_service(&server.url(behaviour), more)).await;
    let id = sandbox.submit("RAISE").await;

    let first = sandbox.spawn("worker");
    eventually("the batch is being processed", async || !server.batches().is_empty()).await;
    first.kill9();
    server.remove("hold");
    sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    let sent = by_batch(&server.batches());
    let whole = &sent[&(1..=ROWS).collect::<Vec<i64>>()];
    assert!(whole.len() >= 2, "sent before and after the crash: {whole:?}");
    assert!(whole.iter().all(|key| key == &whole[0]), "{whole:?}");
    assert!(sent.contains_key(&vec![3]), "3 was tried again: {:?}", sent.keys());
    assert_eq!(keys(&letters(&sandbox, &id).await), [8, 15]);

    server.remove("refused");
    let redriven = sandbox.json(&format!("dead redrive --job {id}")).await;
    let again = text(&redriven[0]["jobId"]);
    let worked = parse(&sandbox.run(&format!("worker --job {again} --json")).await.ok());
    assert_eq!(worked["items"]["processed"], 2, "{worked:#}");
    let of_redrive = |request: &Json| request["batch"]["jobId"] == again.as_str();
    assert!(server.batches().iter().any(of_redrive));
    one_each(&server.batches());
    data.raised_once(ROWS).await;
}
