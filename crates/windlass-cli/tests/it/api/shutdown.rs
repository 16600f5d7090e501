//! SIGTERM: requests in progress finish, event streams end, and leases are released.

use crate::api::events::Events;
use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, eventually, raise};
use serde_json::json;

#[tokio::test]
async fn sigterm_finishes_requests_and_releases_chunks() {
    let data = Data::sqlite().with_accounts(200).await;
    let server = TestServer::with(CliSandbox::on(&data, &raise(10)), 1).await;
    server.put("/api/v1/throughput/RAISE", &json!({"rate": 50})).await.is(200);
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let mut one = Events::of(&server, &format!("/api/v1/jobs/{id}/events")).await;
    let mut all = Events::of(&server, "/api/v1/events").await;
    eventually("the job is at work", async || {
        let job = server.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        job["items"]["processed"].as_i64() > Some(0)
    })
    .await;
    server.process.term();
    while one.next().await.is_some() {}
    while all.next().await.is_some() {}
    let TestServer { process, sandbox, .. } = server;
    let output = process.wait().await.ok();
    assert!(output.stderr.contains("stopped"), "{}", output.stderr);
    assert!(!output.stderr.contains("shutdown timeout exceeded"), "{}", output.stderr);
    // No lease is left that another worker would have to wait for.
    let held = sandbox.chunks(&id).await;
    assert!(held.iter().all(|chunk| chunk["status"] != "PROCESSING"), "{held:?}");
    sandbox.run("throughput RAISE --rate unlimited").await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(200).await;
}
