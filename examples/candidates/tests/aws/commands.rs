//! The same queue and tables without Lambda: `windlass submit`, `worker` and `dead` on any machine.

use crate::stack::{MISSING, Stack};
use serde_json::json;
use std::time::Duration;
use windlass_testkit::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn given_candidates_are_queued_worked_and_redriven_by_windlass() {
    let stack = Stack::with(60).await;
    let (work, dead) = (stack.work.url(), stack.dead.url());
    let records = stack.candidates.records().await;
    let ids = records.iter().map(|one| one["identifier"].as_s().unwrap().as_str());
    let ids = ids.collect::<Vec<_>>().join("\n");
    stack.write("ids", &ids);
    let submitted =
        stack.windlass(&format!("submit MIGRATE_CANDIDATES --ids-file ids --queue {work} --json"));
    let submitted: serde_json::Value = serde_json::from_str(&submitted.await.ok().stdout).unwrap();
    assert_eq!(submitted["itemsEnqueued"], 60, "{submitted}");

    // What failed is hidden for five minutes before it comes back, which nobody waits for here: the
    // trigger gives it back at once.
    stack.trigger.drain().await;
    assert_eq!(stack.candidates.versions(|_| true).await, [MISSING, 60 - MISSING]);
    let listed = stack.windlass(&format!("dead list --queue {dead} --json")).await.ok();
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), MISSING, "{listed:#}");
    assert_eq!(listed[0]["jobId"], submitted["jobId"], "{listed:#}");

    stack.generate("--originals --candidates 60").await;
    stack.windlass(&format!("dead redrive --all --queue {dead} --rate 100")).await.ok();
    let worker = stack.spawn(&format!("worker --queue {work} --workers 2"));
    eventually("all are done", Duration::from_secs(100), async || {
        stack.candidates.versions(|_| true).await == [0, 60]
    })
    .await;
    worker.term();
    worker.wait().await.ok();
    let letters = stack.windlass(&format!("dead list --queue {dead} --json")).await.ok();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&letters.stdout).unwrap(), json!([]));
}
