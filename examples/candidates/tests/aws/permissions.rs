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
    let action = |operation: &String| match operation.as_str() {
        "SendMessageBatch" => "sqs:SendMessage".to_owned(),
        operation => format!("dynamodb:{operation}"),
    };
    operations.map(action).collect()
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
        actions.filter(|one| one.starts_with("dynamodb:") || one == "sqs:SendMessage").collect()
    };
    let [start, process] = &stack.gateways;
    assert_eq!(asked(start), allowed("StartRole"));
    assert_eq!(asked(process), allowed("ProcessRole"));
}
