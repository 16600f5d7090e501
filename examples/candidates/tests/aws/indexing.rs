//! A refresh does what it is for: it restructures old records, and the table's stream feeds the search index.

use crate::stack::Stack;
use crate::table::{candidate_key, year};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

fn of_2024(job_type: &str) -> String {
    json!({"jobType": job_type, "filter": {"reportingYears": ["2024"]}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshed_candidates_are_restructured_and_indexed_once_and_no_others() {
    let mut stack = Stack::with(40).await;
    // Every third batch is delivered twice; a candidate is still written, and so indexed, once.
    stack.trigger.repeat_every = 3;
    stack.run(&of_2024("REFRESH_CANDIDATES")).await;
    stack.indexer.drain().await;
    let records = stack.candidates.records().await;
    let refreshed: Vec<_> = records.iter().filter(|one| year(one) == "2024").collect();
    let ids: BTreeSet<String> =
        refreshed.iter().map(|one| one["identifier"].as_s().unwrap().clone()).collect();
    let indexed = stack.search.take_indexed();
    assert_eq!((indexed.len(), ids.len()), (10, 10), "{indexed:?}");
    assert_eq!(indexed.into_iter().collect::<BTreeSet<_>>(), ids);
    for (id, document) in stack.search.documents() {
        assert_eq!(
            (&document["identifier"], &document["reportingYear"]),
            (&json!(id), &"2024".into())
        );
        assert_eq!(document["creators"].as_array().unwrap().len(), 1, "{document}");
        assert_eq!(document["creator"], Json::Null, "the old form is gone: {document}");
    }
    for one in &records {
        let document = one["document"].as_m().unwrap();
        let is_current = year(one) == "2024";
        assert_eq!(document.contains_key("creators"), is_current, "{one:?}");
        assert_eq!(document.contains_key("creator"), !is_current, "{one:?}");
        assert!(document.contains_key("points"), "{one:?}");
    }
    let signed = stack.search.authorizations();
    assert!(signed.iter().all(|one| one.contains("/es/aws4_request")), "{signed:?}");

    // A refresh of periods is no change of a candidate.
    stack.run(&of_2024("REFRESH_PERIODS")).await;
    stack.indexer.drain().await;
    assert_eq!(stack.search.take_indexed(), [""; 0]);

    // A candidate of the current form is written and indexed again.
    stack.run(&of_2024("REFRESH_CANDIDATES")).await;
    stack.indexer.drain().await;
    assert_eq!(stack.search.take_indexed().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_the_search_engine_refuses_are_delivered_again() {
    let stack = Stack::with(20).await;
    stack.run(&json!({"jobType": "REFRESH_CANDIDATES"}).to_string()).await;
    stack.search.refuse(3);
    stack.indexer.drain().await;
    assert_eq!(stack.search.documents().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_candidate_leaves_the_index() {
    let stack = Stack::with(8).await;
    stack.run(&json!({"jobType": "REFRESH_CANDIDATES"}).to_string()).await;
    let records = stack.candidates.records().await;
    let ids: Vec<_> = records.iter().map(|one| one["identifier"].as_s().unwrap()).collect();
    let table = &stack.candidates;
    let delete = table.client.delete_item().table_name(&table.name);
    delete.set_key(Some(candidate_key(ids[0]))).send().await.unwrap();
    let update = table.client.update_item().table_name(&table.name);
    let update = update.set_key(Some(candidate_key(ids[1]))).update_expression("SET #t = :t");
    let update = update.expression_attribute_names("#t", "type");
    let archived = AttributeValue::S("ARCHIVED".to_owned());
    update.expression_attribute_values(":t", archived).send().await.unwrap();
    stack.indexer.drain().await;
    let left: BTreeSet<String> = stack.search.documents().into_keys().collect();
    assert_eq!(left, ids[2..].iter().map(|id| (*id).clone()).collect());
}
