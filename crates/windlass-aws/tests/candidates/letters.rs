//! Dead letters are listed without losing any, redriven, and ignored.

use crate::fixture::{CandidatesFixture, migrate};
use serde_json::json;
use std::time::Instant;
use windlass_aws::dead_letters::{self, Which};
use windlass_drivers::dynamodb::sdk::types::AttributeValue;

/// A fixture with `count` dead letters of bad records.
async fn with_letters(count: usize) -> CandidatesFixture {
    let fixture = CandidatesFixture::new().await;
    for n in 0..count {
        fixture.put_candidate(&format!("bad{n:02}"), &[("poison", "yes")]).await;
    }
    fixture.start_job(json!({"jobType": "MIGRATE_CANDIDATES"})).await;
    fixture.drain().await;
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_are_listed_without_losing_any() {
    let fixture = with_letters(12).await;
    let queue = fixture.queue(&fixture.dead).await;
    for _ in 0..2 {
        let letters = dead_letters::list(&queue, &Which::default(), 50).await.unwrap();
        assert_eq!(letters.len(), 12);
        assert!(letters.iter().all(|letter| dead_letters::type_of(letter) == "MIGRATE_CANDIDATE"));
    }
    assert_eq!(dead_letters::list(&queue, &Which::default(), 5).await.unwrap().len(), 5);
    let none = Which { message_types: vec!["REFRESH_PERIOD".to_owned()], ..Which::default() };
    assert_eq!(dead_letters::list(&queue, &none, 50).await.unwrap(), []);
    assert_eq!(fixture.bodies(&fixture.dead).await.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn repaired_records_are_redriven_as_the_same_job_at_the_given_rate() {
    let fixture = with_letters(12).await;
    let queue = fixture.queue(&fixture.dead).await;
    let job = dead_letters::list(&queue, &Which::default(), 1).await.unwrap()[0].job();
    for n in 0..11 {
        let key = AttributeValue::S(format!("bad{n:02}"));
        let mend =
            fixture.dynamo.update_item().table_name(&fixture.candidates).key("identifier", key);
        mend.update_expression("REMOVE poison").send().await.unwrap();
    }
    let begun = Instant::now();
    let work = queue.source().await.unwrap();
    assert_eq!(work.url(), fixture.work);
    let redriven = dead_letters::redrive(&queue, &work, &Which::default(), Some(20)).await.unwrap();
    assert_eq!(redriven, 12);
    assert!(
        begun.elapsed().as_millis() >= 500,
        "ten are sent at once, the others half a second later"
    );
    fixture.drain().await;
    for (id, record) in fixture.all_candidates().await {
        let mended = id != "bad11";
        assert_eq!(record.version(), if mended { 2 } else { 1 }, "{id}");
        let jobs = if mended { vec![job.to_string()] } else { Vec::new() };
        assert_eq!(record.jobs(), jobs, "{id}");
    }
    assert_eq!(fixture.bodies(&fixture.dead).await, [migrate("bad11")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_killed_before_it_deletes_leaves_a_harmless_duplicate() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(3).await;
    let queue = fixture.queue(&fixture.work).await;
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    let received = queue.receive(std::time::Duration::ZERO, None).await.unwrap();
    let attributes = &received[0].delivery.attributes;
    let bodies = received.iter().map(|one| one.delivery.body.clone()).collect();
    queue.send(bodies, attributes).await.unwrap();
    queue.hide(&received, std::time::Duration::ZERO).await.unwrap();
    // One by one, because duplicates in one batch are a single item.
    let mut mapping = fixture.mapping();
    mapping.batch_size = 1;
    mapping.drain().await;
    assert!(fixture.all_candidates().await.values().all(|record| record.version() == 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_given_letters_are_deleted_and_no_others() {
    let fixture = with_letters(4).await;
    let queue = fixture.queue(&fixture.dead).await;
    let all = dead_letters::list(&queue, &Which::default(), 50).await.unwrap();
    let two = Which { ids: vec![all[0].id.clone(), all[1].id.clone()], ..Which::default() };
    assert_eq!(dead_letters::ignore(&queue, &two).await.unwrap(), 2);
    let left = dead_letters::list(&queue, &Which::default(), 50).await.unwrap();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|letter| !two.ids.contains(&letter.id)));
    let kind = Which { message_types: vec!["MIGRATE_CANDIDATE".to_owned()], ..Which::default() };
    assert_eq!(dead_letters::ignore(&queue, &kind).await.unwrap(), 2);
    assert_eq!(fixture.bodies(&fixture.dead).await.len(), 0);
}
