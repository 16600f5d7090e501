//! Workers are killed at random. The totals are exact, and no reader sees an incomplete part.

use crate::common::eventually;
use crate::nightly::fixture::{NightlyFixture, ROWS};
use crate::nightly::reading::totals;
use windlass_testkit::Moto;

#[tokio::test]
async fn totals_are_right_after_workers_were_killed() {
    let fixture = NightlyFixture::in_a_folder().await;
    // Each row takes time, so that kills also happen within a statement.
    fixture.edit("WHERE {chunk} GROUP", "WHERE {chunk} AND SLEEP(0.0002) = 0 GROUP");
    let id = fixture.submit("DAILY_REPORT").await;
    fixture.kill_at_work("DAILY_REPORT", &id, 5).await;
    fixture.totals_are_the_banks_own().await;
    assert_eq!(totals(&fixture.report().await), fixture.own_totals().await);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_reader_of_the_manifest_sees_complete_parts_without_duplicates() {
    let fixture = NightlyFixture::in_a_bucket(Moto::shared()).await;
    let id = fixture.submit("TRANSACTIONS_EXPORT").await;
    let mut looks = 0;
    let reader = async {
        // Each read compares the parts with their lines in the manifest.
        eventually("the manifest exists", async || {
            looks += 1;
            let seen = fixture.parts(&id).await;
            if !seen.is_null() {
                assert_eq!((&seen["count"], &seen["distinct"]), (&ROWS.into(), &ROWS.into()));
            }
            !seen.is_null()
        })
        .await;
    };
    tokio::join!(reader, fixture.kill_at_work("TRANSACTIONS_EXPORT", &id, 5));
    assert!(looks > 1, "the reader started too late");
    let seen = fixture.parts(&id).await;
    assert_eq!(totals(&seen), fixture.own_totals().await);
    // Only listed parts exist: orphaned files are deleted.
    let parts = seen["manifest"]["parts"].as_array().unwrap().len();
    assert_eq!(seen["names"].as_array().unwrap().len(), parts + 1, "{:#}", seen["names"]);
    let losses = fixture.sandbox.chunks(&id).await;
    assert!(
        losses.iter().any(|chunk| chunk["losses"] != 0),
        "a worker died while it had leased chunks"
    );
    fixture.sandbox.prove(&id).await;
}
