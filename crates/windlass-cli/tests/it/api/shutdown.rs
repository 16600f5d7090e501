//! SIGTERM: nothing new is begun, what is under way is finished, and those who listen are let go.

use crate::api::events::Events;
use crate::api::served::Served;
use crate::common::{CliSandbox, Data, eventually, raise};
use serde_json::json;

#[tokio::test]
async fn a_server_that_is_told_to_stop_leaves_in_order() {
    let data = Data::sqlite().with_accounts(200).await;
    let served = Served::with(CliSandbox::on(&data, &raise(10)), 1).await;
    served.put("/api/v1/throughput/RAISE", &json!({"rate": 50})).await.is(200);
    let id = served.submit(json!({"jobType": "RAISE"})).await;
    let mut one = Events::of(&served, &format!("/api/v1/jobs/{id}/events")).await;
    let mut all = Events::of(&served, "/api/v1/events").await;
    eventually("the job is at work", async || {
        let job = served.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        job["items"]["processed"].as_i64() > Some(0)
    })
    .await;
    served.process.term();
    while one.next().await.is_some() {}
    while all.next().await.is_some() {}
    let Served { process, sandbox, .. } = served;
    let output = process.wait().await.ok();
    assert!(output.stderr.contains("stopped"), "{}", output.stderr);
    assert!(!output.stderr.contains("cut off"), "{}", output.stderr);
    // Nothing is left behind that another would have to wait for.
    let held = sandbox.chunks(&id).await;
    assert!(held.iter().all(|chunk| chunk["status"] != "PROCESSING"), "{held:?}");
    sandbox.run("throughput RAISE --rate unlimited").await.ok();
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(200).await;
}
