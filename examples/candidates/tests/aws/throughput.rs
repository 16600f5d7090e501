//! An operator changes the batch size and the reserved concurrency while messages are processed.

use crate::stack::Stack;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use windlass_testkit::aws::{Invocation, Moment};

const CANDIDATES: usize = 160;

#[tokio::test(flavor = "multi_thread")]
async fn batch_size_and_concurrency_change_while_messages_are_processed() {
    let stack = Stack::with(CANDIDATES).await;
    let job = stack.load(&json!({"jobType": "REFRESH_CANDIDATES"}).to_string()).await;
    // After five batches slower, and after ten of these faster than before. A batch is written in one transaction.
    let changes = Arc::new(Mutex::new(Vec::new()));
    for (batches, batch_size, concurrency) in [(5, 2, 1), (15, 10, 4)] {
        let trigger = stack.trigger.deployed.clone().unwrap();
        let (process, changes) = (stack.process.clone(), changes.clone());
        stack.gateways[1].at("TransactWriteItems", Moment::Before, batches, move || {
            let before = process.invocations().len();
            trigger.reserve(concurrency);
            trigger.set_maximum(10);
            trigger.set_batch_size(batch_size);
            changes.lock().unwrap().push((before, process.invocations().len()));
        });
    }
    stack.trigger.drain().await;

    let invocations = stack.process.invocations();
    let changes = changes.lock().unwrap().clone();
    let [(first, slower), (slowed, faster)] = changes[..] else {
        panic!("{changes:?} {invocations:?}")
    };
    let most = |some: &[Invocation]| {
        let records = some.iter().map(|one| one.records).max();
        (records, some.iter().map(|one| one.at_once).max())
    };
    let (records, at_once) = most(&invocations[..first]);
    assert_eq!(records, Some(5), "{invocations:?}");
    assert!(at_once <= Some(2), "{invocations:?}");
    // A batch that was received before the change may still begin after it.
    assert_eq!(most(&invocations[slower + 1..slowed]), (Some(2), Some(1)), "{invocations:?}");
    let (records, at_once) = most(&invocations[faster + 1..]);
    assert_eq!(records, Some(10), "{invocations:?}");
    assert!((Some(2)..=Some(4)).contains(&at_once), "{invocations:?}");

    // Each candidate was received once and written once.
    let received: usize = invocations.iter().map(|one| one.records).sum();
    assert_eq!(received, CANDIDATES, "{invocations:?}");
    assert_eq!(stack.candidates.versions(|_| true).await, [0, CANDIDATES]);
    assert_eq!(stack.letters().await, 0);
    let id = job["jobId"].as_str().unwrap();
    let shown = stack.windlass(&format!("job {id} --queue {} --json", stack.work.url())).await.ok();
    let shown: Json = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["status"], "COMPLETED", "{shown:#}");
    for (name, count) in [("total", CANDIDATES), ("processed", CANDIDATES), ("skipped", 0)] {
        assert_eq!(shown["items"][name], count, "{name}: {shown:#}");
    }
}
