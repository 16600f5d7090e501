//! Limits, stop and start, workers: over HTTP as from the command line.

use crate::api::served::Served;
use crate::common::{CliSandbox, Data, eventually, raise, text};
use serde_json::json;

#[tokio::test]
async fn what_is_stopped_is_not_worked_until_it_is_started() {
    let data = Data::sqlite().with_accounts(20).await;
    let served = Served::with(CliSandbox::on(&data, &raise(10)), 1).await;
    let stopped = served.post("/api/v1/stop", &json!({})).await.is(200);
    assert_eq!((&stopped[0]["subject"], &stopped[0]["stopped"]), (&json!("*"), &json!(true)));
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    let job = served.get(&format!("/api/v1/jobs/{id}")).await.is(200);
    assert!(text(&job["error"]).contains("stopped"), "{job}");
    served.post("/api/v1/start", &json!({})).await.is(200);
    served.until(&id, "COMPLETED").await;
    data.raised_once(20).await;

    let one = served.post("/api/v1/stop?jobType=RAISE", &json!({})).await.is(200);
    assert_eq!(one[0]["subject"], "RAISE");
    assert_eq!(
        served.get("/api/v1/throughput").await.is(200),
        served.sandbox.json("throughput").await
    );
    assert_eq!(served.post("/api/v1/stop?jobType=NONE", &json!({})).await.status, 404);
}

#[tokio::test]
async fn limits_are_set_for_types_and_jobs() {
    let data = Data::sqlite().with_accounts(20).await;
    let served = Served::start(CliSandbox::on(&data, &raise(10))).await;
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    let set = served
        .put("/api/v1/throughput/RAISE", &json!({"concurrency": 2, "rate": "unlimited"}))
        .await;
    assert_eq!(set.is(200)[0]["concurrency"], 2);
    let own =
        served.put(&format!("/api/v1/jobs/{id}/throughput"), &json!({"rate": 5})).await.is(200);
    assert_eq!((&own[0]["subject"], &own[0]["rate"]), (&json!(id), &json!(5)));
    let listed = served.get("/api/v1/throughput").await.is(200);
    assert_eq!(listed, served.sandbox.json("throughput").await);
    served.put("/api/v1/throughput/RAISE", &json!({"concurrency": "default"})).await.is(200);
    assert_eq!(served.put("/api/v1/throughput/NONE", &json!({"concurrency": 1})).await.status, 404);
    for limit in [json!(0), json!(-1), json!(1.5), json!("many"), json!([1])] {
        let answer = served.put("/api/v1/throughput/RAISE", &json!({"concurrency": limit})).await;
        assert!(text(&answer.is(400)["detail"]).contains("from 1"), "{answer:?}");
    }
}

#[tokio::test]
async fn the_processes_that_work_are_listed() {
    let data = Data::sqlite().with_accounts(1).await;
    let served = Served::with(CliSandbox::on(&data, &raise(10)), 3).await;
    eventually("the worker says that it works", async || {
        let workers = served.get("/api/v1/workers").await.is(200);
        workers[0]["slots"] == 3 && workers[0]["vanished"] == false
    })
    .await;
}
