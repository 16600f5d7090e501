//! Candidates and periods share a table: a job loads and writes only its own record type, and a message names a record
//! without the prefix of its key.

use crate::stack::Stack;
use crate::table::{candidate_key, version, year};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// The messages in the work queue, which stay there.
async fn messages(stack: &Stack) -> Vec<Json> {
    let mut received = Vec::new();
    loop {
        let some = stack.work.receive(Duration::ZERO, None).await.unwrap();
        if some.is_empty() {
            break;
        }
        received.extend(some);
    }
    stack.work.hide(&received, Duration::ZERO).await.unwrap();
    received.iter().map(|one| serde_json::from_str(&one.delivery.body).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_loads_its_record_type_by_scan_and_by_year() {
    let stack = Stack::with(40).await;
    let records = stack.candidates.records().await;
    let ids = |of: &str| -> BTreeSet<String> {
        let records = records.iter().filter(|one| of.is_empty() || year(one) == of);
        records.map(|one| one["identifier"].as_s().unwrap().clone()).collect()
    };
    for (filter, years, of) in [
        (json!(null), ["2022", "2023", "2024", "2025"].as_slice(), ""),
        (json!({"reportingYears": ["2024"]}), &["2024"], "2024"),
    ] {
        for (job_type, message, field, expected) in [
            ("REFRESH_CANDIDATES", "REFRESH_CANDIDATE", "identifier", ids(of)),
            ("MIGRATE_CANDIDATES", "MIGRATE_CANDIDATE", "identifier", ids(of)),
            (
                "REFRESH_PERIODS",
                "REFRESH_PERIOD",
                "year",
                years.iter().map(|y| (*y).into()).collect(),
            ),
        ] {
            stack.load(&json!({"jobType": job_type, "filter": filter}).to_string()).await;
            let messages = messages(&stack).await;
            assert_eq!(messages.len(), expected.len(), "{messages:#?}");
            for one in &messages {
                assert_eq!((&one["type"], one.as_object().unwrap().len()), (&message.into(), 2));
            }
            let loaded = messages.iter().map(|one| one[field].as_str().unwrap().to_owned());
            assert_eq!(loaded.collect::<BTreeSet<_>>(), expected);
            stack.trigger.drain().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_became_another_record_type_is_skipped() {
    let stack = Stack::with(8).await;
    stack.load(&json!({"jobType": "REFRESH_CANDIDATES"}).to_string()).await;
    let id = stack.candidates.records().await[0]["identifier"].as_s().unwrap().clone();
    let table = &stack.candidates;
    let call = table.client.update_item().table_name(&table.name);
    call.set_key(Some(candidate_key(&id)))
        .update_expression("SET #t = :t")
        .expression_attribute_names("#t", "type")
        .expression_attribute_values(":t", AttributeValue::S("ARCHIVED".to_owned()))
        .send()
        .await
        .unwrap();
    stack.trigger.drain().await;
    assert_eq!(table.versions(|_| true).await, [0, 7]);
    assert_eq!(version(&table.record(&id).await), 1, "an archived candidate is not rewritten");
    assert_eq!(stack.letters().await, 0, "and is no failure");
}
