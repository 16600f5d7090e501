//! Running a night again: by hand for the same date, and after a chunk failed.

use crate::common::{said, text};
use crate::nightly::fixture::NightlyFixture;
use serde_json::Value as Json;

/// The content hash of each part, sorted, because chunk numbers depend on the order of planning.
fn hashes(seen: &Json) -> Vec<String> {
    let parts = seen["manifest"]["parts"].as_array().unwrap();
    let mut hashes: Vec<String> = parts.iter().map(|part| text(&part["contentHash"])).collect();
    hashes.sort();
    hashes
}

#[tokio::test]
async fn running_the_same_date_again_gives_the_same_content() {
    let fixture = NightlyFixture::in_a_folder().await;
    let first = fixture.complete("TRANSACTIONS_EXPORT").await;
    let again = fixture.complete("TRANSACTIONS_EXPORT").await;
    assert_ne!(first, again, "another job for the same date");
    let (one, two) = (fixture.parts(&first).await, fixture.parts(&again).await);
    assert!(hashes(&one).len() >= 40);
    assert_eq!(hashes(&one), hashes(&two));
    assert_eq!(one["manifest"]["totals"]["contentHash"], two["manifest"]["totals"]["contentHash"]);

    // One cent in one row changes one part and the total.
    fixture.bank.run("UPDATE transactions SET amount = amount + 0.01 WHERE id = 45000").await;
    let changed = fixture.parts(&fixture.complete("TRANSACTIONS_EXPORT").await).await;
    let (before, after) = (hashes(&one), hashes(&changed));
    assert_eq!(after.iter().filter(|hash| !before.contains(hash)).count(), 1);
    assert_ne!(
        one["manifest"]["totals"]["contentHash"],
        changed["manifest"]["totals"]["contentHash"]
    );
}

#[tokio::test]
async fn the_same_request_with_its_key_is_the_same_job() {
    let fixture = NightlyFixture::in_a_folder().await;
    let request = "DAILY_REPORT --param date=2026-01-31 --idempotency-key night";
    let id = fixture.sandbox.submit(request).await;
    fixture.work(&id).await;
    let before = fixture.sandbox.chunks(&id).await;
    assert_eq!(fixture.sandbox.submit(request).await, id);
    fixture.work(&id).await;
    assert_eq!(fixture.sandbox.chunks(&id).await, before, "nothing ran again");
    let other = "submit DAILY_REPORT --param date=2026-02-01 --idempotency-key night";
    assert_ne!(fixture.sandbox.run(other).await.code, Some(0), "another request, the same key");
}

#[tokio::test]
async fn a_retry_runs_the_failed_chunks_and_reports_what_it_skips() {
    let fixture = NightlyFixture::in_a_folder().await;
    // The statement fails for the chunks with these two rows until they are corrected.
    let broken =
        "WHERE {chunk} AND 1 = (SELECT 1 UNION ALL SELECT 2 FROM dual WHERE memo = 'broken') GROUP";
    fixture.edit("WHERE {chunk} GROUP", broken);
    fixture.edit("step.map =", "step.on_bad_row = \"fail\"\nstep.map =");
    fixture.edit("attempts = 5", "attempts = 2");
    fixture.bank.run("UPDATE transactions SET memo = 'broken' WHERE id IN (29997, 45000)").await;
    let id = fixture.submit("DAILY_REPORT").await;
    let failed = fixture.sandbox.run(&format!("worker --job {id}")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(said(&failed).contains("2 failed"), "{failed:?}");
    assert!(fixture.loaded().await.is_empty(), "a failed night loads nothing");

    fixture.bank.run("UPDATE transactions SET memo = 'mended' WHERE memo = 'broken'").await;
    let before = fixture.sandbox.chunks(&id).await;
    let retried = fixture.sandbox.run(&format!("retry {id}")).await.ok();
    let counts = format!("2 chunks will run again; {} already completed", before.len() - 2);
    assert!(said(&retried).contains(&counts), "{retried:?}");
    fixture.work(&id).await;
    let after = fixture.sandbox.chunks(&id).await;
    let moved = before.iter().zip(&after).filter(|(a, b)| a["epoch"] != b["epoch"]).count();
    assert_eq!(moved, 2);
    fixture.totals_are_the_banks_own().await;
}
