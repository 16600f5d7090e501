//! The warehouse's rows of a night are replaced whole, whoever reads meanwhile.

use crate::world::{DATE, World};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn a_reader_never_sees_a_mix_of_two_loads() {
    let world = World::in_a_folder().await;
    // Another night is nobody's business here.
    world.warehouse.run("INSERT INTO daily_report VALUES ('2026-01-30', 'old', 1, 1)").await;
    world.complete("DAILY_REPORT").await;
    let mut right = BTreeSet::from([sum(&world).await]);
    let over = AtomicBool::new(false);
    let reader = async {
        let mut seen = BTreeSet::new();
        while !over.load(Ordering::SeqCst) {
            seen.insert(sum(&world).await);
        }
        seen
    };
    let writer = async {
        for _ in 0..3 {
            // Each row differs from the one before: a mix would have a sum of its own.
            world.bank.run("UPDATE transactions SET amount = amount + 0.07").await;
            world.complete("DAILY_REPORT").await;
            right.insert(sum(&world).await);
            world.totals_are_the_banks_own().await;
        }
        over.store(true, Ordering::SeqCst);
    };
    let (seen, ()) = tokio::join!(reader, writer);
    assert_eq!(right.len(), 4);
    assert!(seen.len() > 1, "the reader saw no change");
    assert!(seen.is_subset(&right), "{seen:?} are not all of {right:?}");
    let others = "SELECT count(*) FROM daily_report WHERE branch = 'old'";
    assert_eq!(world.warehouse.one::<i64>(others).await, 1, "another night was touched");
}

/// What a reader sees of the night, as one statement sees it.
async fn sum(world: &World) -> String {
    let sql = format!(
        "SELECT concat(count(*), ' branches, ', sum(total)) FROM daily_report WHERE date = '{DATE}'"
    );
    world.warehouse.one(&sql).await
}
