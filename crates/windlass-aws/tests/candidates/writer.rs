//! A concurrent writer of the same records: none of its writes is lost.

use crate::fixture::{CandidatesFixture, event, failures, migrate, refresh};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use windlass_drivers::dynamodb::sdk::Client;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::aws::Moment;

/// Adds one to `count` of a record, conditional on its version. Returns whether the write succeeded.
pub(crate) async fn add_one(dynamo: &Client, table: &str, id: &str) -> bool {
    let key = AttributeValue::S(id.to_owned());
    let read = dynamo.get_item().table_name(table).key("identifier", key.clone());
    let item = read.consistent_read(true).send().await.unwrap().item.unwrap();
    let number = |n: i64| AttributeValue::N(n.to_string());
    let written = dynamo
        .update_item()
        .table_name(table)
        .key("identifier", key)
        .update_expression("SET #v = #v + :one ADD #c :one")
        .condition_expression("#v = :seen")
        .expression_attribute_names("#v", "version")
        .expression_attribute_names("#c", "count")
        .expression_attribute_values(":one", number(1))
        .expression_attribute_values(":seen", item["version"].clone())
        .send()
        .await;
    written.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrent_write_is_detected_and_the_step_runs_again() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(1).await;
    // Changes the title between the function's read and write.
    let (dynamo, table) = (fixture.dynamo.clone(), fixture.candidates.clone());
    let runtime = tokio::runtime::Handle::current();
    fixture.gateway.at("UpdateItem", Moment::Before, 0, move || {
        let write = async move {
            dynamo
                .update_item()
                .table_name(table)
                .key("identifier", AttributeValue::S("c0".to_owned()))
                .update_expression("SET #v = #v + :one, #t = :t")
                .expression_attribute_names("#v", "version")
                .expression_attribute_names("#t", "title")
                .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
                .expression_attribute_values(":t", AttributeValue::S("another".to_owned()))
                .send()
                .await
                .unwrap();
        };
        tokio::task::block_in_place(|| runtime.block_on(write));
    });
    let answer = fixture.process.invoke(event(&[("m", migrate("c0"))])).await.unwrap();
    assert_eq!(failures(&answer), [""; 0]);
    let record = fixture.candidate("c0").await;
    assert_eq!((record.version(), record.text("title")), (3, "ANOTHER"));
    assert_eq!(fixture.gateway.count("UpdateItem"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_of_a_concurrent_writer_is_lost() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(30).await;
    let stop = Arc::new(AtomicBool::default());
    let added = Arc::new(AtomicUsize::default());
    let writer = {
        let (stop, added) = (stop.clone(), added.clone());
        let (dynamo, table) = (fixture.dynamo.clone(), fixture.candidates.clone());
        tokio::spawn(async move {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let did = add_one(&dynamo, &table, &format!("c{}", n % 30)).await;
                added.fetch_add(usize::from(did), Ordering::Relaxed);
            }
        })
    };
    for _ in 0..3 {
        fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
        fixture.drain().await;
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    let all = fixture.all_candidates().await;
    let sum: i64 = all.values().map(|record| record.version() - 1).sum();
    let added = added.load(Ordering::Relaxed) as i64;
    assert!(added > 0);
    assert_eq!(sum, 3 * 30 + added, "each job and each other write happened once");
    assert_eq!(fixture.bodies(&fixture.dead).await.len(), 0);
    for record in all.values() {
        let count = record.0.get("count").map_or(0, |n| n.as_n().unwrap().parse().unwrap());
        assert_eq!(record.version(), 1 + 3 + count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_keeps_changing_fails_its_message_which_is_delivered_again() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(1).await;
    for _ in 0..5 {
        let (dynamo, table) = (fixture.dynamo.clone(), fixture.candidates.clone());
        let runtime = tokio::runtime::Handle::current();
        fixture.gateway.at("UpdateItem", Moment::Before, 0, move || {
            let write = async move { assert!(add_one(&dynamo, &table, "c0").await) };
            tokio::task::block_in_place(|| runtime.block_on(write));
        });
    }
    let answer = fixture.process.invoke(event(&[("m", refresh("c0"))])).await.unwrap();
    assert_eq!(failures(&answer), ["m"]);
    assert_eq!(fixture.candidate("c0").await.version(), 6);
    let answer = fixture.process.invoke(event(&[("m", refresh("c0"))])).await.unwrap();
    assert_eq!(failures(&answer), [""; 0]);
    assert_eq!(fixture.candidate("c0").await.version(), 7);
}
