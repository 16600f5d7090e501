//! An application writes the same candidates while they are refreshed and migrated. No change is lost, and each job
//! writes each candidate once, although messages are delivered twice.

use crate::stack::Stack;
use crate::table::{Table, candidate_key, field, version};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass_drivers::dynamodb::sdk::error::ProvideErrorMetadata;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

const CANDIDATES: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn no_write_of_an_application_is_lost_during_both_jobs() {
    let mut stack = Stack::with(CANDIDATES).await;
    stack.generate(&format!("--originals --candidates {CANDIDATES}")).await;
    stack.trigger.repeat_every = 5;
    stack.bus.repeat_every(3);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|seed| tokio::spawn(write(stack.candidates.clone(), seed, stop.clone())))
        .collect();
    for job_type in ["REFRESH_CANDIDATES", "MIGRATE_CANDIDATES"] {
        stack.run(&json!({"jobType": job_type}).to_string()).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert!(written > 0);
    let mut approvals = 0;
    for one in stack.candidates.records().await {
        let own: u64 = field(&one, "approvals").map_or(0, |text| text.parse().unwrap());
        assert_eq!(version(&one), 3 + own, "one write by each job: {one:?}");
        assert!(field(&one, "title").is_some(), "{one:?}");
        approvals += own;
    }
    assert_eq!(approvals, written, "a write of the application was lost");
    assert_eq!(stack.letters().await, 0);
}

/// Approves one candidate after the other as an application does: reads it, and writes it back if its version is
/// unchanged. Returns the number of writes.
async fn write(table: Table, seed: usize, stop: Arc<AtomicBool>) -> u64 {
    let records = table.records().await;
    let ids: Vec<_> = records.iter().map(|one| one["identifier"].as_s().unwrap().clone()).collect();
    let mut written = 0;
    for step in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = &ids[(step * 79 + seed * 31) % ids.len()];
        loop {
            let found = table.record(id).await;
            let number = |number: u64| AttributeValue::N(number.to_string());
            let mut document = found["document"].as_m().unwrap().clone();
            let own: u64 = field(&found, "approvals").map_or(0, |text| text.parse().unwrap());
            document.insert("approvals".to_owned(), number(own + 1));
            let update = table
                .client
                .update_item()
                .table_name(&table.name)
                .set_key(Some(candidate_key(id)))
                .update_expression("SET #d = :d, #v = :next")
                .condition_expression("#v = :v")
                .expression_attribute_names("#d", "document")
                .expression_attribute_names("#v", "version")
                .expression_attribute_values(":d", AttributeValue::M(document))
                .expression_attribute_values(":v", number(version(&found)))
                .expression_attribute_values(":next", number(version(&found) + 1));
            match update.send().await {
                Ok(_) => break,
                Err(error) => {
                    assert_eq!(error.code(), Some("ConditionalCheckFailedException"), "{error:?}");
                }
            }
        }
        written += 1;
    }
    written
}
