//! Health endpoints and metrics.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::{take, wallets};
use crate::common::{CliSandbox, Data, eventually, slow_raise};
use serde_json::json;
use windlass_testkit::{Options, PostgresServer};

#[tokio::test]
async fn health_endpoints_need_no_token() {
    let data = wallets(Data::sqlite()).await;
    let server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    assert_eq!(server.get("/healthz").await.is(200), json!({"status": "alive"}));
    assert_eq!(server.get("/readyz").await.is(200), json!({"status": "ready"}));
    server.get("/api/v1/openapi.json").await.is(200);
    assert_eq!(server.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn the_server_is_not_ready_while_the_store_is_unavailable() {
    let postgres = PostgresServer::start(Options::default());
    let database = postgres.database().await;
    let server =
        TestServer::start(CliSandbox::with(&format!("[store]\nurl = \"{}\"\n", database.url())))
            .await;
    server.get("/readyz").await.is(200);
    postgres.stop_immediate();
    eventually("not ready", async || server.get("/readyz").await.status == 503).await;
    server.get("/healthz").await.is(200);
    let jobs = server.get("/api/v1/jobs").await;
    assert!(!jobs.text.contains("postgres"), "{jobs:?}");
    assert_eq!(jobs.status, 503);
    postgres.start_again();
    eventually("ready again", async || server.get("/readyz").await.status == 200).await;
}

#[tokio::test]
async fn metrics_count_items_by_outcome() {
    let data = wallets(Data::sqlite()).await;
    let mut server = TestServer::with(CliSandbox::on(&data, &(take("") + &auth())), 1).await;
    server.token(&token("chief", "chief"));
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "COMPLETED").await;
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
    eventually("all metrics are present", async || {
        text = server.get("/metrics").await.text;
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
async fn metrics_change_while_a_job_runs() {
    let data = Data::slow(5000, 0.05).await;
    let server =
        TestServer::with(CliSandbox::on(&data, &(slow_raise(1) + "chunk.lease = \"1s\"\n")), 1)
            .await;
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let worker = server.sandbox.spawn("worker --concurrency 1");
    let holds = async || !server.sandbox.held_by(&id, worker.id()).await.is_empty();
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
    eventually("all metrics increase", async || {
        text = server.get("/metrics").await.text;
        moving.iter().all(|name| above_zero(&text, name))
    })
    .await;
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.is(200);
    assert_eq!(job["status"], "PROCESSING", "the job is still running");
}
