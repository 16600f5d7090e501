//! What machines ask of the server.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, Data, eventually, slow_raise};
use serde_json::json;
use windlass_testkit::{Options, PostgresServer};

#[tokio::test]
async fn it_is_alive_and_ready_whoever_asks() {
    let data = savings_accounts(Data::sqlite()).await;
    let served = Served::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    assert_eq!(served.get("/healthz").await.is(200), json!({"status": "alive"}));
    assert_eq!(served.get("/readyz").await.is(200), json!({"status": "ready"}));
    served.get("/api/v1/openapi.json").await.is(200);
    assert_eq!(served.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn it_is_not_ready_while_the_store_is_away() {
    let server = PostgresServer::start(Options::default());
    let database = server.database().await;
    let served =
        Served::start(CliSandbox::with(&format!("[store]\nurl = \"{}\"\n", database.url()))).await;
    served.get("/readyz").await.is(200);
    server.stop_immediate();
    eventually("not ready", async || served.get("/readyz").await.status == 503).await;
    served.get("/healthz").await.is(200);
    let jobs = served.get("/api/v1/jobs").await;
    assert!(!jobs.text.contains("postgres"), "{jobs:?}");
    assert_eq!(jobs.status, 503);
    server.start_again();
    eventually("ready again", async || served.get("/readyz").await.status == 200).await;
}

#[tokio::test]
async fn metrics_tell_what_became_of_items() {
    let data = savings_accounts(Data::sqlite()).await;
    let mut served = Served::with(CliSandbox::on(&data, &(take("") + &auth())), 1).await;
    served.token(&token("chief", "chief"));
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    served.until(&id, "COMPLETED").await;
    let expected = [
        "windlass_items_total{job_type=\"TAKE\",outcome=\"processed\"} 38",
        "windlass_items_total{job_type=\"TAKE\",outcome=\"dead\"} 2",
        "windlass_items_total{job_type=\"TAKE\",outcome=\"skipped\"} 0",
        "windlass_conflicts_total{job_type=\"TAKE\"} 0",
        "windlass_lease_losses_total{job_type=\"TAKE\"} 0",
        "windlass_chunk_seconds_count{job_type=\"TAKE\"} 4",
        "windlass_chunks_pending{job_type=\"TAKE\"} 0",
        "windlass_chunks_in_flight{job_type=\"TAKE\"} 0",
        "windlass_jobs{job_type=\"TAKE\",status=\"QUEUED\"} 0",
        "windlass_dead_letters{job_type=\"TAKE\"} 2",
        "windlass_workers 1",
        "windlass_slots 1",
        "windlass_http_requests_total{method=\"POST\",route=\"/api/v1/jobs\",status=\"201\"} 1",
    ];
    let mut text = String::new();
    eventually("everything is measured", async || {
        text = served.get("/metrics").await.text;
        expected.iter().all(|line| text.lines().any(|found| found == *line))
    })
    .await;
    let page = include_str!("../../../../../docs/metrics.md");
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in names {
        assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/metrics.md");
    }
}

#[tokio::test]
async fn metrics_move_while_a_job_runs() {
    let data = Data::postgres().await.with_accounts(5000).await;
    data.pace(0.05).await;
    let served =
        Served::with(CliSandbox::on(&data, &(slow_raise(1) + "chunk.lease = \"1s\"\n")), 1).await;
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    let worker = served.sandbox.spawn("worker --concurrency 1");
    let holds = async || !served.sandbox.held_by(&id, worker.id()).await.is_empty();
    eventually("another process holds a chunk", holds).await;
    worker.kill9();
    let mut text = String::new();
    let above_zero = |text: &str, name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.is_some_and(|value: f64| value > 0.0)
    };
    let moving = [
        "windlass_chunk_seconds_count{job_type=\"RAISE\"}",
        "windlass_lease_losses_total{job_type=\"RAISE\"}",
        "windlass_items_total{job_type=\"RAISE\",outcome=\"processed\"}",
        "windlass_chunks_pending{job_type=\"RAISE\"}",
        "windlass_chunks_in_flight{job_type=\"RAISE\"}",
        "windlass_jobs{job_type=\"RAISE\",status=\"PROCESSING\"}",
    ];
    eventually("everything moves", async || {
        text = served.get("/metrics").await.text;
        moving.iter().all(|name| above_zero(&text, name))
    })
    .await;
    let job = served.get(&format!("/api/v1/jobs/{id}")).await.is(200);
    assert_eq!(job["status"], "PROCESSING", "it was measured before the end");
}
