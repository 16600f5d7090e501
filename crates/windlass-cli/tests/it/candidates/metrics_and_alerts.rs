//! Queue depth, rate and dead letters have metrics, and the first dead letter raises an alert.

use crate::candidates::fixture::{CandidatesFixture, MISSING};
use crate::candidates::service::Server;
use crate::common::eventually;

#[tokio::test]
async fn metrics_show_depth_rate_and_dead_letters_and_dead_letters_raise_an_alert() {
    let fixture = CandidatesFixture::new(1000).await;
    // A server applies a changed limit within half a second, and applies this one before it starts.
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate 1 --concurrency 1").await.ok();
    let server = Server::start(&fixture.sandbox, 2).await;
    server.submit("{\"jobType\": \"REFRESH_CANDIDATES\"}").await;
    let metric = async |name: &str, labels: &str| {
        let metrics = server.metrics().await;
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{{labels}")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    eventually("the metrics show the pending chunks", async || {
        metric("windlass_chunks_pending", "job_type=\"REFRESH_CANDIDATES\"").await > 0.0
    })
    .await;
    server.submit("{\"jobType\": \"MIGRATE_CANDIDATES\"}").await;
    eventually("the metrics show the processed items", async || {
        let labels = "job_type=\"MIGRATE_CANDIDATES\",outcome=\"processed\"";
        metric("windlass_items_total", labels).await == (1000 - MISSING) as f64
    })
    .await;
    eventually("the metrics show the dead letters", async || {
        metric("windlass_dead_letters", "job_type=\"MIGRATE_CANDIDATES\"").await == MISSING as f64
    })
    .await;
    eventually("an alert is raised", async || {
        let alerts = fixture.sandbox.json("alerts").await;
        let mut alerts = alerts.as_array().unwrap().iter();
        alerts.any(|alert| {
            alert["kind"] == "dead-letters" && alert["jobType"] == "MIGRATE_CANDIDATES"
        })
    })
    .await;
}
