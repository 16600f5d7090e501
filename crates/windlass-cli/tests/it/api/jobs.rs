//! Jobs: submit, list, show, pause, resume, cancel, retry.

use crate::api::server_fixture::TestServer;
use crate::api::wallets_fixture::{take, wallets};
use crate::common::{CliSandbox, Data, raise, text};
use serde_json::json;

#[tokio::test]
async fn api_and_command_line_show_the_same_job() {
    for data in Data::both_with_accounts(100).await {
        let server = TestServer::with(CliSandbox::on(&data, &raise(10)), 2).await;
        let response =
            server.post("/api/v1/jobs", &json!({"jobType": "RAISE", "priority": 7})).await;
        let id = text(&response.is(201)["id"]);
        assert_eq!(response.header("location"), Some(format!("/api/v1/jobs/{id}").as_str()));
        let job = server.until(&id, "COMPLETED").await;
        assert_eq!(job["items"]["processed"], 100);
        assert_eq!(job, server.sandbox.job(&id).await);
        let listed = server.get("/api/v1/jobs").await.is(200);
        assert_eq!(listed, server.sandbox.json("jobs").await);
        let chunks = server.get(&format!("/api/v1/jobs/{id}/chunks")).await.is(200);
        assert_eq!(chunks, server.sandbox.json(&format!("chunks {id}")).await);
        let segments = server.get(&format!("/api/v1/jobs/{id}/segments")).await.is(200);
        assert!(segments.as_array().unwrap().iter().all(|one| one["status"] == "COMPLETED"));
        data.raised_once(100).await;
    }
}

#[tokio::test]
async fn an_idempotency_key_returns_the_same_job_or_a_conflict() {
    let data = Data::sqlite().with_accounts(10).await;
    let server = TestServer::start(CliSandbox::on(&data, &raise(10))).await;
    let request = json!({"jobType": "RAISE", "idempotencyKey": "k"});
    let id = server.submit(request.clone()).await;
    let again = server.post("/api/v1/jobs", &request).await.is(200);
    assert_eq!(again["id"], id.as_str());
    let other = json!({"jobType": "RAISE", "idempotencyKey": "k", "priority": 9});
    let conflict = server.post("/api/v1/jobs", &other).await.is(409);
    assert_eq!(conflict["code"], "WL0007");
    assert_eq!(server.get("/api/v1/jobs").await.is(200).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn lists_are_filtered_and_paginated() {
    let data = Data::sqlite().with_accounts(100).await;
    let jobs = raise(10) + &raise(10).replace("RAISE", "LIFT");
    let server = TestServer::start(CliSandbox::on(&data, &jobs)).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(server.submit(json!({"jobType": "RAISE", "idempotencyKey": n.to_string()})).await);
    }
    let other = server.submit(json!({"jobType": "LIFT"})).await;
    server.post(&format!("/api/v1/jobs/{other}/cancel"), &json!({})).await.is(200);
    let cancelled = server.get("/api/v1/jobs?status=CANCELLED").await.is(200);
    assert_eq!(cancelled[0]["id"], other.as_str());
    let mut found = Vec::new();
    let mut path = Some("/api/v1/jobs?jobType=RAISE&limit=2".to_owned());
    while let Some(next) = path {
        let page = server.get(&next).await;
        found.extend(page.is(200).as_array().unwrap().iter().map(|job| text(&job["id"])));
        path = page.header("link").map(|link| {
            let (path, relation) = link[1..].split_once('>').unwrap();
            assert_eq!(relation, "; rel=\"next\"");
            path.to_owned()
        });
    }
    found.reverse();
    assert_eq!(found, ids);
    server.sandbox.run(&format!("worker --job {}", ids[0])).await.ok();
    let page = server.get(&format!("/api/v1/jobs/{}/chunks?after=3&limit=2", ids[0])).await;
    let numbers: Vec<_> =
        page.is(200).as_array().unwrap().iter().map(|chunk| chunk["chunk"].clone()).collect();
    assert_eq!(numbers, [4, 5]);
    assert!(page.header("link").unwrap().contains("after=5"));
}

#[tokio::test]
async fn jobs_are_paused_resumed_cancelled_and_retried() {
    let data = Data::sqlite().with_accounts(10).await;
    let server = TestServer::start(CliSandbox::on(&data, &raise(10))).await;
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let act =
        async |what: &str| server.post(&format!("/api/v1/jobs/{id}/{what}"), &json!({})).await;
    assert_eq!(act("pause").await.is(200)["status"], "PAUSED");
    assert_eq!(act("pause").await.is(409)["code"], "WL0008");
    assert_eq!(act("resume").await.is(200)["status"], "QUEUED");
    assert_eq!(act("retry").await.is(409)["code"], "WL0008");
    assert_eq!(act("cancel").await.is(200)["status"], "CANCELLED");
    data.untouched().await;
}

#[tokio::test]
async fn a_failed_job_is_retried() {
    let data = wallets(Data::sqlite()).await;
    // The job fails until the column exists.
    let jobs = take("retry = { attempts = 1 }\n").replace("amount - 10", "amount - 10, seen = 1");
    let server = TestServer::with(CliSandbox::on(&data, &jobs), 1).await;
    let id = server.submit(json!({"jobType": "TAKE", "ids": [1, 2]})).await;
    server.until(&id, "FAILED").await;
    data.run("ALTER TABLE wallets ADD COLUMN seen integer").await;
    server.post(&format!("/api/v1/jobs/{id}/retry"), &json!({})).await.is(200);
    server.until(&id, "COMPLETED").await;
    assert_eq!(data.number("SELECT count(*) FROM wallets WHERE seen = 1").await, 2);
}
