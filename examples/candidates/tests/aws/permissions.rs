//! The functions use exactly the permissions that the template grants.

use crate::stack::{MISSING, Stack};
use crate::template::{permissions, resources};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use windlass_testkit::aws::Gateway;

const CANDIDATES: usize = 6;

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
    assert_eq!([start.take_denied(), process.take_denied()].concat(), [""; 0]);
    assert_eq!(asked(start), allowed("StartRole"));
    assert_eq!(asked(process), allowed("ProcessRole"));
}

/// The actions of a policy that the function itself uses and moto checks, each with the policy without it.
///
/// The functions send events to a bus of the tests. Lambda itself receives and deletes messages and writes the logs.
/// Whether `s3:ListBucket` is allowed changes only which error AWS returns for a missing object; moto returns always
/// the same.
fn without_each(policy: &Json) -> Vec<(String, Json)> {
    let others = ["events:", "logs:", "s3:ListBucket", "sqs:DeleteMessage", "sqs:ReceiveMessage"];
    let mut found = Vec::new();
    for (place, statement) in policy["Statement"].as_array().unwrap().iter().enumerate() {
        let actions = statement["Action"].as_array().cloned();
        let actions = actions.unwrap_or_else(|| vec![statement["Action"].clone()]);
        for action in actions.iter().map(|action| action.as_str().unwrap()) {
            if others.iter().any(|other| action.starts_with(other)) {
                continue;
            }
            let mut policy = policy.clone();
            if actions.len() > 1 {
                let left = actions.iter().filter(|one| **one != action).cloned().collect();
                policy["Statement"][place]["Action"] = Json::Array(left);
            } else {
                policy["Statement"].as_array_mut().unwrap().remove(place);
            }
            found.push((action.to_owned(), policy));
        }
    }
    found
}

/// Runs a migration of new candidates. Returns whether its end was announced, with the candidates without an original
/// as its only dead letters.
async fn migrates(stack: &Stack, filter: Json) -> bool {
    stack.generate(&format!("--candidates {CANDIDATES} --missing {MISSING}")).await;
    let request = json!({"jobType": "MIGRATE_CANDIDATES", "filter": filter});
    let Ok(job) = stack.start.invoke(request).await else { return false };
    stack.bus.idle().await;
    stack.trigger.drain().await;
    let announced = |event: &Json| {
        let detail = &event["detail"];
        detail["jobId"] == job["jobId"] && detail["items"]["dead"] == MISSING
    };
    stack.bus.others().iter().any(announced)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_without_one_of_its_permissions_is_denied_access() {
    let stack = Stack::with(CANDIDATES).await;
    let years = json!({"reportingYears": ["2022", "2023", "2024", "2025"]});
    assert!(migrates(&stack, json!(null)).await);
    assert!(migrates(&stack, years.clone()).await);
    let [start, process] = &stack.gateways;
    assert_eq!([start.take_denied(), process.take_denied()].concat(), [""; 0]);
    for (role, function, gateway, checked) in
        [("StartRole", &stack.start, start, 7), ("ProcessRole", &stack.process, process, 12)]
    {
        let policy = &stack.roles[role]["Document"];
        let reduced = without_each(policy);
        assert_eq!(reduced.len(), checked, "{policy:#}");
        for (action, reduced) in reduced {
            stack.set_policy(role, &reduced).await;
            // A new process, which has read nothing yet.
            function.set("WITHOUT", &action);
            let filter = if action == "dynamodb:Query" { years.clone() } else { json!(null) };
            // A dead letter that cannot be sent with its error is moved by SQS without it, and the job still ends.
            let is_moved = (role, action.as_str()) == ("ProcessRole", "sqs:SendMessage");
            assert_eq!(migrates(&stack, filter).await, is_moved, "{role} without {action}");
            let denied = gateway.take_denied();
            // S3 does not tell the action.
            let told = match action.as_str() {
                "s3:GetObject" => "<Code>AccessDenied</Code>".to_owned(),
                _ => format!("is not authorized to perform: {action} on resource: arn:aws:"),
            };
            assert!(!denied.is_empty(), "{role} is not denied {action}");
            assert!(denied.iter().all(|one| one.contains(&told)), "{role} {action}: {denied:#?}");
        }
        stack.set_policy(role, policy).await;
        function.set("WITHOUT", "");
        assert!(migrates(&stack, json!(null)).await, "{role} has all its permissions again");
    }
}
