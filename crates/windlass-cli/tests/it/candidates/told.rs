//! Depth, rate and dead letters can be watched, and the first dead letter is told.

use crate::candidates::fixture::{CandidatesFixture, MISSING};
use crate::candidates::service::Server;
use crate::common::eventually;

#[tokio::test]
async fn depth_rate_and_dead_letters_are_measured_and_letters_alert() {
    let fixture = CandidatesFixture::new(1000).await;
    // A server hears of a limit within half a second, and of this one before it begins.
    fixture.sandbox.run("throughput REFRESH_CANDIDATES --rate 1 --concurrency 1").await.ok();
    let server = Server::start(&fixture.sandbox, 2).await;
    server.submit("{\"jobType\": \"REFRESH_CANDIDATES\"}").await;
    let metric = async |name: &str, labels: &str| {
        let metrics = server.metrics().await;
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{{labels}")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    eventually("what waits is seen", async || {
        metric("windlass_chunks_pending", "job_type=\"REFRESH_CANDIDATES\"").await > 0.0
    })
    .await;
    server.submit("{\"jobType\": \"MIGRATE_CANDIDATES\"}").await;
    eventually("what is done is seen", async || {
        let labels = "job_type=\"MIGRATE_CANDIDATES\",outcome=\"processed\"";
        metric("windlass_items_total", labels).await == (1000 - MISSING) as f64
    })
    .await;
    eventually("dead letters are seen", async || {
        metric("windlass_dead_letters", "job_type=\"MIGRATE_CANDIDATES\"").await == MISSING as f64
    })
    .await;
    eventually("somebody is told", async || {
        let alerts = fixture.sandbox.json("alerts").await;
        let mut alerts = alerts.as_array().unwrap().iter();
        alerts.any(|alert| {
            alert["kind"] == "dead-letters" && alert["jobType"] == "MIGRATE_CANDIDATES"
        })
    })
    .await;
}
