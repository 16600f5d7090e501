//! The night again: by hand for the same date, and after a chunk of it failed.

use crate::common::{said, text};
use crate::world::World;
use serde_json::Value as Json;

/// The content hash of each part. Chunks are numbered by chance where segments are cut side by side.
fn hashes(seen: &Json) -> Vec<String> {
    let parts = seen["manifest"]["parts"].as_array().unwrap();
    let mut hashes: Vec<String> = parts.iter().map(|part| text(&part["contentHash"])).collect();
    hashes.sort();
    hashes
}

#[tokio::test]
async fn the_same_date_again_gives_the_same_content() {
    let world = World::in_a_folder().await;
    let first = world.complete("TRANSACTIONS_EXPORT").await;
    let again = world.complete("TRANSACTIONS_EXPORT").await;
    assert_ne!(first, again, "another job, by hand");
    let (one, two) = (world.parts(&first).await, world.parts(&again).await);
    assert!(hashes(&one).len() >= 40);
    assert_eq!(hashes(&one), hashes(&two));
    assert_eq!(one["manifest"]["totals"]["contentHash"], two["manifest"]["totals"]["contentHash"]);

    // One cent in one row changes one part, and the whole.
    world.bank.run("UPDATE transactions SET amount = amount + 0.01 WHERE id = 45000").await;
    let changed = world.parts(&world.complete("TRANSACTIONS_EXPORT").await).await;
    let (before, after) = (hashes(&one), hashes(&changed));
    assert_eq!(after.iter().filter(|hash| !before.contains(hash)).count(), 1);
    assert_ne!(
        one["manifest"]["totals"]["contentHash"],
        changed["manifest"]["totals"]["contentHash"]
    );
}

#[tokio::test]
async fn the_same_request_under_its_key_is_the_same_job() {
    let world = World::in_a_folder().await;
    let request = "DAILY_REPORT --param date=2026-01-31 --idempotency-key night";
    let id = world.place.submit(request).await;
    world.work(&id).await;
    let before = world.place.chunks(&id).await;
    assert_eq!(world.place.submit(request).await, id);
    world.work(&id).await;
    assert_eq!(world.place.chunks(&id).await, before, "nothing was done again");
    let other = "submit DAILY_REPORT --param date=2026-02-01 --idempotency-key night";
    assert_ne!(world.place.run(other).await.code, Some(0), "another request, the same key");
}

#[tokio::test]
async fn a_retry_runs_what_failed_and_says_what_it_skips() {
    let world = World::in_a_folder().await;
    // The statement fails for the chunks that hold these two rows, for as long as they are so.
    let broken =
        "WHERE {chunk} AND 1 = (SELECT 1 UNION ALL SELECT 2 FROM dual WHERE memo = 'broken') GROUP";
    world.edit("WHERE {chunk} GROUP", broken);
    world.edit("attempts = 5", "attempts = 2");
    world.bank.run("UPDATE transactions SET memo = 'broken' WHERE id IN (29997, 45000)").await;
    let id = world.submit("DAILY_REPORT").await;
    let failed = world.place.run(&format!("worker --job {id}")).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(said(&failed).contains("2 failed"), "{failed:?}");
    assert!(world.loaded().await.is_empty(), "nothing is loaded of a night that failed");

    world.bank.run("UPDATE transactions SET memo = 'mended' WHERE memo = 'broken'").await;
    let before = world.place.chunks(&id).await;
    let retried = world.place.run(&format!("retry {id}")).await.ok();
    let counts = format!("2 chunks will run again; {} completed before", before.len() - 2);
    assert!(said(&retried).contains(&counts), "{retried:?}");
    world.work(&id).await;
    let after = world.place.chunks(&id).await;
    let moved = before.iter().zip(&after).filter(|(a, b)| a["epoch"] != b["epoch"]).count();
    assert_eq!(moved, 2);
    world.totals_are_the_banks_own().await;
}
