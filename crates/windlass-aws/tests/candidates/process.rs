//! What *process* does with messages.

use crate::fixture::{CandidatesFixture, JOB, Plan, event, failures, migrate, refresh};
use serde_json::json;
use windlass_testkit::Moto;

#[tokio::test(flavor = "multi_thread")]
async fn each_message_type_has_its_effect() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(2).await;
    fixture.periods(&["2024"]).await;
    let period = json!({"type": "REFRESH_PERIOD", "year": "2024"});
    let messages = [("m0", refresh("c0")), ("m1", migrate("c1")), ("m2", period)];
    let answer = fixture.process.invoke(event(&messages)).await.unwrap();
    assert_eq!(answer, json!({"batchItemFailures": []}));
    let all = fixture.all_candidates().await;
    assert_eq!((all["c0"].version(), all["c0"].text("title")), (2, "a title"));
    assert_eq!((all["c1"].version(), all["c1"].text("title")), (2, "A TITLE"));
    let periods = fixture.all(&fixture.periods, "year").await;
    assert_eq!(periods["2024"].version(), 2);
    for record in [&all["c0"], &all["c1"], &periods["2024"]] {
        assert_eq!(record.jobs(), [JOB]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_messages_are_reported_and_the_others_processed() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(2).await;
    fixture.put_candidate("bad", &[("poison", "yes")]).await;
    let messages = [
        ("ok", refresh("c0")),
        ("missing candidate", refresh("unknown")),
        ("missing period", json!({"type": "REFRESH_PERIOD", "year": "1066"})),
        ("poison", migrate("bad")),
        ("beside poison", migrate("c1")),
        ("unknown type", json!({"type": "REFRESH", "identifier": "c0"})),
        ("no message", json!("hello")),
    ];
    let answer = fixture.process.invoke(event(&messages)).await.unwrap();
    let expected = ["missing candidate", "missing period", "poison", "unknown type", "no message"];
    assert_eq!(failures(&answer), expected);
    let all = fixture.all_candidates().await;
    assert_eq!((all["c0"].version(), all["c1"].version(), all["bad"].version()), (2, 2, 1));
    let log = fixture.process.log();
    for said in ["there is no record with this key", "this one is bad", "`REFRESH` is unknown"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    // The log has one line per batch with its counts.
    let line = log.lines().find(|line| line.contains("\"batch worked\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["messages"], &line["failed_messages"]), (&json!(7), &json!(5)));
    assert_eq!((&line["processed"], &line["writes"]), (&json!(2), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_fails_three_times_is_a_dead_letter_and_no_item_is_written_twice() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(9).await;
    fixture.put_candidate("bad", &[("poison", "yes")]).await;
    fixture.start_job(json!({"jobType": "MIGRATE_CANDIDATES"})).await;
    fixture.drain().await;
    assert_eq!(fixture.bodies(&fixture.dead).await, [migrate("bad")]);
    let all = fixture.all_candidates().await;
    for (id, record) in &all {
        assert_eq!(record.version(), if id == "bad" { 1 } else { 2 }, "{id}");
    }
    assert_eq!(fixture.gateway.count("UpdateItem"), 9, "one write per item");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_of_a_message_fails_without_the_other_items() {
    let plan = Plan { refresh: "queue.items_per_message = 4", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(10).await;
    let ids: Vec<String> = (0..10).map(|n| format!("c{n}")).chain(["unknown".to_owned()]).collect();
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES", "ids": ids})).await;
    fixture.drain().await;
    // The letter has only the item that failed.
    let list = json!({"type": "REFRESH_CANDIDATE", "identifiers": ["unknown"]});
    assert_eq!(fixture.bodies(&fixture.dead).await, [list]);
    assert!(fixture.all_candidates().await.values().all(|record| record.version() == 2));
    assert_eq!(fixture.gateway.count("UpdateItem"), 10, "the others are not written again");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_unfinished_at_the_deadline_are_reported_and_delivered_again() {
    let plan = Plan { seconds: 30, ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(1).await;
    // Started before, so that the deadline covers only the work.
    fixture.process.invoke(event(&[])).await.unwrap();
    let slow = windlass_drivers::dynamodb::sdk::types::AttributeValue::N("600".to_owned());
    let update = fixture.dynamo.put_item().table_name(&fixture.candidates).item("slow", slow);
    let mut record = fixture.candidate("c0").await.0;
    record.insert(
        "identifier".to_owned(),
        windlass_drivers::dynamodb::sdk::types::AttributeValue::S("slow".to_owned()),
    );
    record
        .into_iter()
        .fold(update, |put, (name, value)| put.item(name, value))
        .send()
        .await
        .unwrap();
    let messages = [("quick", refresh("c0")), ("slow", migrate("slow"))];
    let answer = fixture.process.invoke(event(&messages)).await.unwrap();
    assert_eq!(failures(&answer), ["slow"]);
    let all = fixture.all_candidates().await;
    assert_eq!((all["c0"].version(), all["slow"].version()), (2, 1));
}
