//! The same queue and tables without Lambda: `windlass submit`, `worker` and `dead` on any machine.

use crate::stack::{MISSING, Stack};
use serde_json::{Value as Json, json};
use std::time::Duration;
use windlass_testkit::{Output, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn listed_candidates_are_enqueued_worked_and_redriven_by_the_windlass_command() {
    let stack = Stack::with(60).await;
    let (work, dead) = (stack.work.url(), stack.dead.url());
    let records = stack.candidates.records().await;
    let ids = records.iter().map(|one| one["identifier"].as_s().unwrap().as_str());
    let ids = ids.collect::<Vec<_>>().join("\n");
    stack.write("ids", &ids);
    let submit = format!("submit MIGRATE_CANDIDATES --ids-file ids --queue {work} --json");
    let submitted = parse(&stack.windlass(&submit).await);
    assert_eq!(submitted["itemsEnqueued"], 60, "{submitted}");

    // A failed message stays hidden for five minutes. The event source mapping releases it at once, so that the
    // test does not wait.
    stack.trigger.drain().await;
    assert_eq!(stack.candidates.versions(|_| true).await, [MISSING, 60 - MISSING]);
    let list = format!("dead list --queue {dead} --json");
    let listed = parse(&stack.windlass(&list).await);
    assert_eq!(listed.as_array().unwrap().len(), MISSING, "{listed:#}");
    assert_eq!(listed[0]["jobId"], submitted["jobId"], "{listed:#}");

    stack.generate("--originals --candidates 60").await;
    stack.windlass(&format!("dead redrive --all --queue {dead} --rate 100")).await.ok();
    let worker = stack.spawn(&format!("worker --queue {work} --concurrency 2"));
    eventually("all are done", Duration::from_secs(100), async || {
        stack.candidates.versions(|_| true).await == [0, 60]
    })
    .await;
    worker.term();
    worker.wait().await.ok();
    assert_eq!(parse(&stack.windlass(&list).await), json!([]));
}

/// The JSON that a successful command printed.
fn parse(output: &Output) -> Json {
    serde_json::from_str(&output.clone().ok().stdout).unwrap()
}
