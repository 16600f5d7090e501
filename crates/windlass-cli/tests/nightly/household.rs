//! The bank is only read, by an account that may do no more; and a night is let go of in time.

use crate::common::said;
use crate::reading::totals;
use crate::world::World;

#[tokio::test]
async fn an_account_that_may_only_read_is_enough() {
    let world = World::via(|url| url.replacen("windlass:wind%40lass@", "reader@", 1)).await;
    let name = world.bank.name();
    world
        .bank
        .run(&format!(
            "CREATE USER IF NOT EXISTS reader@'%';
             GRANT SELECT, CREATE TEMPORARY TABLES ON {name}.* TO reader@'%'"
        ))
        .await;
    world.complete("DAILY_REPORT").await;
    world.totals_are_the_banks_own().await;
    let export = world.complete("TRANSACTIONS_EXPORT").await;
    assert_eq!(totals(&world.parts(&export).await), world.own_totals().await);
    let tables = world.bank.rows("SHOW TABLES").await;
    assert_eq!(tables, [[Some("transactions".to_owned())]], "nothing of ours is there");
}

#[tokio::test]
async fn a_night_is_let_go_of_with_everything_but_its_output() {
    let world = World::in_a_folder().await;
    world.complete("DAILY_REPORT").await;
    let export = world.complete("TRANSACTIONS_EXPORT").await;
    let kept = world.place.run("prune").await.ok();
    assert!(said(&kept).contains("deleted 0 jobs, 0 chunks"), "{kept:?}");
    world.edit("retention = { chunks = \"7d\" }", "retention = { chunks = \"0s\" }");
    let pruned = world.place.json("prune").await;
    assert_eq!(pruned["emptied"], 2, "{pruned:#}");
    for table in ["windlass_chunks", "windlass_export", "windlass_ledger"] {
        let left: i64 = world.warehouse.one(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(left, 0, "{table}");
    }
    assert_eq!(totals(&world.parts(&export).await), world.own_totals().await);
    world.totals_are_the_banks_own().await;
}
