//! What the functions ask of AWS is what the template allows them: no more, and hardly less.

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
        "PutEvents" => "events:PutEvents".to_owned(),
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
    let allowed = |role: &str| -> BTreeSet<String> {
        let permissions = permissions(&resources[role]).into_iter();
        permissions.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let [start, process] = &stack.gateways;
    let (start, process) = (asked(start), asked(process));
    let needed = |actions: &[&str]| actions.iter().map(|one| (*one).to_owned()).collect();
    let of_start: BTreeSet<String> =
        needed(&["dynamodb:DescribeTable", "dynamodb:Query", "dynamodb:Scan", "sqs:SendMessage"]);
    assert_eq!(start, of_start);
    assert!(start.is_subset(&allowed("StartRole")), "{start:?}");
    assert!(process.contains("dynamodb:UpdateItem"), "{process:?}");
    assert!(process.is_subset(&allowed("ProcessRole")), "{process:?}");
}
