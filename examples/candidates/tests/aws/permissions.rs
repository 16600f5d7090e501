//! What the functions ask of AWS is what the template allows them: no more, and no less.

use crate::stack::Stack;
use crate::template::{permissions, resources};
use serde_json::json;
use std::collections::BTreeSet;
use windlass_testkit::aws::Gateway;

/// The actions that calls need. Those in batches need that of a single one.
fn asked(gateway: &Gateway) -> BTreeSet<String> {
    let counts = gateway.counts();
    let operations = counts.keys().filter(|operation| !operation.is_empty());
    let action = |operation: &String| match operation.as_str() {
        "SendMessageBatch" => "sqs:SendMessage".to_owned(),
        operation => format!("dynamodb:{operation}"),
    };
    operations.map(action).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_is_allowed() {
    let stack = Stack::with(30).await;
    for job_type in ["REFRESH_CANDIDATES", "MIGRATE_CANDIDATES", "REFRESH_PERIODS"] {
        for filter in [json!(null), json!({"reportingYears": ["2025"]})] {
            stack.run(&json!({"jobType": job_type, "filter": filter}).to_string()).await;
        }
    }
    let resources = resources().await;
    // What is done to tables and the queue; the rest is asked for by Lambda, or elsewhere.
    let allowed = |role: &str| -> BTreeSet<String> {
        let permissions = permissions(&resources[role]).into_iter();
        let actions = permissions.map(|line| line.split(' ').next().unwrap().to_owned());
        actions.filter(|one| one.starts_with("dynamodb:") || one == "sqs:SendMessage").collect()
    };
    let [start, process] = &stack.gateways;
    assert_eq!(asked(start), allowed("StartRole"));
    assert_eq!(asked(process), allowed("ProcessRole"));
}
