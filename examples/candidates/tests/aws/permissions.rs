//! The functions use exactly the permissions that the template grants.

use crate::stack::Stack;
use crate::template::{permissions, resources};
use serde_json::json;
use std::collections::BTreeSet;
use windlass_testkit::aws::Gateway;

/// The actions that the requests need. A batch request needs the action of a single one.
fn asked(gateway: &Gateway) -> BTreeSet<String> {
    let counts = gateway.counts();
    let operations = counts.keys().filter(|operation| !operation.is_empty());
    let actions = |operation: &String| match operation.as_str() {
        "SendMessageBatch" => vec!["sqs:SendMessage".to_owned()],
        "GetQueueAttributes" | "GetQueueUrl" => vec![format!("sqs:{operation}")],
        // A transaction needs the actions of its parts.
        "TransactWriteItems" => ["ConditionCheckItem", "PutItem", "UpdateItem"]
            .map(|part| format!("dynamodb:{part}"))
            .to_vec(),
        operation => vec![format!("dynamodb:{operation}")],
    };
    operations.flat_map(actions).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_functions_use_exactly_the_permissions_that_the_template_grants() {
    let stack = Stack::with(30).await;
    for job_type in ["REFRESH_CANDIDATES", "MIGRATE_CANDIDATES", "REFRESH_PERIODS"] {
        for filter in [json!(null), json!({"reportingYears": ["2025"]})] {
            stack.run(&json!({"jobType": job_type, "filter": filter}).to_string()).await;
        }
    }
    let resources = resources().await;
    // Only actions on tables and the queue; the others are used by Lambda itself.
    let allowed = |role: &str| -> BTreeSet<String> {
        let permissions = permissions(&resources[role]).into_iter();
        let actions = permissions.map(|line| line.split(' ').next().unwrap().to_owned());
        let by_lambda = ["sqs:DeleteMessage", "sqs:ReceiveMessage"];
        let ours = |one: &String| one.starts_with("dynamodb:") || one.starts_with("sqs:");
        actions.filter(|one| ours(one) && !by_lambda.contains(&one.as_str())).collect()
    };
    let [start, process] = &stack.gateways;
    assert_eq!(asked(start), allowed("StartRole"));
    assert_eq!(asked(process), allowed("ProcessRole"));
}
