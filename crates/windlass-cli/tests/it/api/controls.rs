//! Throughput limits, stop and start, workers.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, eventually, raise, text};
use serde_json::json;

#[tokio::test]
async fn stopped_work_waits_until_it_is_started() {
    let data = Data::sqlite().with_accounts(20).await;
    let server = TestServer::with(CliSandbox::on(&data, &raise(10)), 1).await;
    let stopped = server.post("/api/v1/stop", &json!({})).await.is(200);
    assert_eq!((&stopped[0]["subject"], &stopped[0]["stopped"]), (&json!("*"), &json!(true)));
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.is(200);
    assert!(text(&job["error"]).contains("stopped"), "{job}");
    server.post("/api/v1/start", &json!({})).await.is(200);
    server.until(&id, "COMPLETED").await;
    data.raised_once(20).await;

    let one = server.post("/api/v1/stop?jobType=RAISE", &json!({})).await.is(200);
    assert_eq!(one[0]["subject"], "RAISE");
    assert_eq!(
        server.get("/api/v1/throughput").await.is(200),
        server.sandbox.json("throughput").await
    );
    assert_eq!(server.post("/api/v1/stop?jobType=NONE", &json!({})).await.status, 404);
}

#[tokio::test]
async fn throughput_limits_are_set_for_job_types_and_jobs() {
    let data = Data::sqlite().with_accounts(20).await;
    let server = TestServer::start(CliSandbox::on(&data, &raise(10))).await;
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let set = server
        .put("/api/v1/throughput/RAISE", &json!({"concurrency": 2, "rate": "unlimited"}))
        .await;
    assert_eq!(set.is(200)[0]["concurrency"], 2);
    let own =
        server.put(&format!("/api/v1/jobs/{id}/throughput"), &json!({"rate": 5})).await.is(200);
    assert_eq!((&own[0]["subject"], &own[0]["rate"]), (&json!(id), &json!(5)));
    let listed = server.get("/api/v1/throughput").await.is(200);
    assert_eq!(listed, server.sandbox.json("throughput").await);
    server.put("/api/v1/throughput/RAISE", &json!({"concurrency": "default"})).await.is(200);
    assert_eq!(server.put("/api/v1/throughput/NONE", &json!({"concurrency": 1})).await.status, 404);
    for limit in [json!(0), json!(-1), json!(1.5), json!("many"), json!([1])] {
        let response = server.put("/api/v1/throughput/RAISE", &json!({"concurrency": limit})).await;
        assert!(text(&response.is(400)["detail"]).contains("at least 1"), "{response:?}");
    }
}

#[tokio::test]
async fn workers_are_listed() {
    let data = Data::sqlite().with_accounts(1).await;
    let server = TestServer::with(CliSandbox::on(&data, &raise(10)), 3).await;
    eventually("the worker is registered", async || {
        let workers = server.get("/api/v1/workers").await.is(200);
        workers[0]["slots"] == 3 && workers[0]["vanished"] == false
    })
    .await;
}
