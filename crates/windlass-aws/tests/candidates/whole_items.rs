//! A writer that puts whole items and drops `windlass_jobs`: with `queue.ledger = "table"` a message that is delivered
//! again still changes nothing.

use crate::fixture::{CandidatesFixture, JOB, Plan, event, failures, migrate, refresh};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::time::SystemTime;
use windlass_aws::JOBS;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::Moto;

const TABLE: &str = "queue.ledger = \"table\"\nqueue.ledger_ttl = \"20d\"";

async fn with_ledger(lines: &'static str) -> CandidatesFixture {
    let plan = Plan { refresh: lines, migrate: lines, ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(20).await;
    fixture
}

/// Reads a candidate and puts it back as a program does that does not know the attribute: the version is raised, on
/// condition that it is unchanged.
async fn put_whole(fixture: &CandidatesFixture, id: &str) {
    let mut item = fixture.candidate(id).await.0;
    let version = item["version"].as_n().unwrap().parse::<i64>().unwrap();
    item.remove(JOBS);
    item.insert("version".to_owned(), AttributeValue::N((version + 1).to_string()));
    let put = fixture.dynamo.put_item().table_name(&fixture.candidates).set_item(Some(item));
    let put = put.condition_expression("#v = :v").expression_attribute_names("#v", "version");
    let read = AttributeValue::N(version.to_string());
    put.expression_attribute_values(":v", read).send().await.unwrap();
}

async fn deliver(fixture: &CandidatesFixture, message: Json) {
    let answer = fixture.process.invoke(event(&[("m", message)])).await.unwrap();
    assert_eq!(failures(&answer), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redelivery_after_a_whole_item_was_put_changes_nothing_with_a_ledger_table() {
    for (lines, expected) in [("", 4), (TABLE, 3)] {
        let fixture = with_ledger(lines).await;
        for (id, message) in [("c0", refresh("c0")), ("c1", migrate("c1"))] {
            deliver(&fixture, message.clone()).await;
            put_whole(&fixture, id).await;
            deliver(&fixture, message.clone()).await;
            assert_eq!(fixture.candidate(id).await.version(), expected, "{id} {lines}");
            deliver(&fixture, message).await;
            assert_eq!(fixture.candidate(id).await.version(), expected, "{id} {lines}");
        }
        let log = fixture.process.log();
        let repeated = log.lines().filter(|line| line.contains("\"repeated\":1")).count();
        assert_eq!(repeated, if lines.is_empty() { 2 } else { 4 }, "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_deliveries_are_written_once_with_a_ledger_table() {
    let fixture = with_ledger(TABLE).await;
    let ids: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
    let messages: Vec<_> = ids.iter().map(|id| (id.as_str(), migrate(id))).collect();
    let messages = event(&messages);
    let invoke = || fixture.process.invoke(messages.clone());
    let (one, two, three) = tokio::join!(invoke(), invoke(), invoke());
    for answer in [one, two, three] {
        assert_eq!(failures(&answer.unwrap()), [""; 0]);
    }
    for (id, record) in fixture.all_candidates().await {
        assert_eq!((record.version(), record.text("title")), (2, "A TITLE"), "{id}");
        assert_eq!(record.jobs(), [""; 0], "the record itself remembers nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_the_ledger_table_expires() {
    let fixture = with_ledger(TABLE).await;
    deliver(&fixture, refresh("c0")).await;
    let partition = format!("{JOB}#{}#[\"c0\"]", fixture.candidates);
    let key = HashMap::from([
        ("job".to_owned(), AttributeValue::S(partition)),
        ("row".to_owned(), AttributeValue::S("processed".to_owned())),
    ]);
    let get = fixture.dynamo.get_item().table_name("windlass_ledger").set_key(Some(key));
    let row = get.send().await.unwrap().item.unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let expires: u64 = row["expires"].as_n().unwrap().parse().unwrap();
    assert!((now + 19 * 86_400..=now + 20 * 86_400).contains(&expires), "{expires}");
    // Both writes are one transaction.
    assert_eq!(fixture.gateway.count("TransactWriteItems"), 1);
    assert_eq!(fixture.gateway.count("UpdateItem"), 0);
}
