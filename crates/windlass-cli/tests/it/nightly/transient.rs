//! Five percent of the reads fail in three ways. The results are right.

use crate::nightly::fixture::{NightlyFixture, ROWS};
use crate::nightly::reading::totals;
use serde_json::Value as Json;
use windlass_testkit::{MariaServer, Proxy};

/// Runs a job type while reads with this text fail. Returns its chunks, and the proxy that the database is reached
/// through.
async fn run(job_type: &str, text: &str) -> (NightlyFixture, Proxy, String, Vec<Json>) {
    let proxy = Proxy::start_mysql(MariaServer::shared().addr()).await;
    let fixture = NightlyFixture::via(|url| proxy.url_via(&url)).await;
    // More chunks than in the other tests, so that some reads fail.
    fixture.edit("chunk.items = 500", "chunk.items = 100");
    let id = fixture.submit(job_type).await;
    proxy.fail_reads(text, 5);
    fixture.work(&id).await;
    let (reads, failed) = proxy.reads();
    assert!(reads >= 200 && failed >= 6, "{failed} of {reads} reads failed");
    let chunks = fixture.sandbox.chunks(&id).await;
    (fixture, proxy, id, chunks)
}

#[tokio::test]
async fn totals_are_right_although_reads_fail() {
    let (fixture, _proxy, id, chunks) = run("DAILY_REPORT", "max(booked_at)").await;
    assert!(chunks.iter().any(|chunk| chunk["attempts"] != 0), "no chunk was retried");
    fixture.totals_are_the_banks_own().await;
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn parts_are_complete_although_reads_fail() {
    let (fixture, _proxy, id, chunks) = run("TRANSACTIONS_EXPORT", "`memo`").await;
    assert!(chunks.iter().any(|chunk| chunk["attempts"] != 0), "no chunk was retried");
    let seen = fixture.parts(&id).await;
    assert_eq!((&seen["count"], &seen["distinct"]), (&ROWS.into(), &ROWS.into()));
    assert_eq!(totals(&seen), fixture.own_totals().await);
    assert_eq!(seen["names"].as_array().unwrap().len(), chunks.len() + 1);
    fixture.sandbox.prove(&id).await;
}
