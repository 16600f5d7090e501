//! Chunks follow the distribution of the keys: disjoint, with complete pairs, of about equal size.

use crate::visits::fixture::{CHUNKS, ITEMS, VisitsFixture};
use std::collections::BTreeMap;

#[tokio::test]
async fn thirty_chunks_of_one_segment_have_about_equal_sizes() {
    let fixture = VisitsFixture::new().await;
    let id = fixture.submit().await;
    fixture.complete(&id).await;
    assert_eq!(fixture.sandbox.chunks(&id).await.len() as i64, CHUNKS);
    every_pair_is_in_one_of_about_equal_chunks(&fixture, &id).await;
}

#[tokio::test]
async fn chunks_of_several_segments_have_about_equal_sizes() {
    let fixture = VisitsFixture::new().await;
    let id = fixture.sandbox.submit("UPDATE_VISITS").await;
    fixture.complete(&id).await;
    let chunks = fixture.sandbox.chunks(&id).await;
    assert!(
        chunks.iter().any(|chunk| chunk["segment"].as_i64() > Some(1)),
        "there is only one segment"
    );
    every_pair_is_in_one_of_about_equal_chunks(&fixture, &id).await;
}

async fn every_pair_is_in_one_of_about_equal_chunks(fixture: &VisitsFixture, id: &str) {
    let chunks = fixture.sandbox.chunks(id).await;
    // Each pair of the table, due or not, is in exactly one chunk.
    let key_sets: Vec<String> =
        chunks.iter().map(|chunk| VisitsFixture::within(chunk) + "::int").collect();
    let elsewhere = format!(
        "SELECT count(*) FROM (SELECT DISTINCT visit_date, ssn FROM maps) pairs WHERE {} <> 1",
        key_sets.join(" + ")
    );
    assert_eq!(fixture.number(&elsewhere).await, 0, "pairs in no chunk or in several");

    // A chunk has chunk.items rows and the rest of its last pair. Only the last chunk of each segment may have
    // fewer.
    let hottest = "SELECT max(rows) FROM (SELECT count(*) AS rows FROM maps \
                   WHERE conflict_id IS NOT NULL GROUP BY visit_date, ssn) pairs";
    let hottest = fixture.number(hottest).await;
    assert!(hottest > 30, "the data is not skewed: {hottest}");
    let mut last_of_load = BTreeMap::new();
    for chunk in &chunks {
        last_of_load.insert(chunk["segment"].as_i64(), chunk["chunk"].as_i64());
    }
    for chunk in &chunks {
        let within = VisitsFixture::within(chunk);
        let rows = format!("SELECT count(*) FROM maps WHERE conflict_id IS NOT NULL AND {within}");
        let rows = fixture.number(&rows).await;
        assert_eq!(chunk["items"], rows, "planned: {chunk:#}");
        assert_eq!(chunk["counts"]["processed"], rows, "processed: {chunk:#}");
        assert!(rows < ITEMS + hottest, "{rows} rows: {chunk:#}");
        let is_last = last_of_load[&chunk["segment"].as_i64()] == chunk["chunk"].as_i64();
        assert!(is_last || rows >= ITEMS, "{rows} rows: {chunk:#}");
    }

    fixture.updated_once().await;
    let audit = fixture.sandbox.prove(id).await;
    assert_eq!(audit["planned"], audit["counts"]["processed"], "{audit:#}");
}
