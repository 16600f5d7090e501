//! The rows of a night in the warehouse are replaced atomically for all readers.

use crate::nightly::fixture::{DATE, NightlyFixture};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn no_reader_sees_a_mix_of_two_loads() {
    let fixture = NightlyFixture::in_a_folder().await;
    // Rows of another night must not change.
    fixture.warehouse.run("INSERT INTO daily_report VALUES ('2026-01-30', 'old', 1, 1)").await;
    fixture.complete("DAILY_REPORT").await;
    let mut right = BTreeSet::from([sum(&fixture).await]);
    let over = AtomicBool::new(false);
    let reader = async {
        let mut seen = BTreeSet::new();
        while !over.load(Ordering::SeqCst) {
            seen.insert(sum(&fixture).await);
        }
        seen
    };
    let writer = async {
        for _ in 0..3 {
            // Each amount changes between the loads, so a mix of both would have a different sum.
            fixture.bank.run("UPDATE transactions SET amount = amount + 0.07").await;
            fixture.complete("DAILY_REPORT").await;
            right.insert(sum(&fixture).await);
            fixture.totals_are_the_banks_own().await;
        }
        over.store(true, Ordering::SeqCst);
    };
    let (seen, ()) = tokio::join!(reader, writer);
    assert_eq!(right.len(), 4);
    assert!(seen.len() > 1, "the reader saw no change");
    assert!(seen.is_subset(&right), "{seen:?} are not all of {right:?}");
    let others = "SELECT count(*) FROM daily_report WHERE branch = 'old'";
    assert_eq!(fixture.warehouse.one::<i64>(others).await, 1, "rows of another night changed");
}

/// The sum that a reader sees in one statement.
async fn sum(fixture: &NightlyFixture) -> String {
    let sql = format!(
        "SELECT concat(count(*), ' branches, ', sum(total)) FROM daily_report WHERE date = '{DATE}'"
    );
    fixture.warehouse.one(&sql).await
}
