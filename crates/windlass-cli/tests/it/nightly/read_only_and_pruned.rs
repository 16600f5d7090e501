//! The bank is only read, with a read-only account, and the data of a night is pruned in time.

use crate::common::said;
use crate::nightly::fixture::NightlyFixture;
use crate::nightly::reading::totals;

#[tokio::test]
async fn a_read_only_account_is_enough() {
    let fixture =
        NightlyFixture::via(|url| url.replacen("windlass:wind%40lass@", "reader@", 1)).await;
    let name = fixture.bank.name();
    fixture
        .bank
        .run(&format!(
            "CREATE USER IF NOT EXISTS reader@'%';
             GRANT SELECT, CREATE TEMPORARY TABLES ON {name}.* TO reader@'%'"
        ))
        .await;
    fixture.complete("DAILY_REPORT").await;
    fixture.totals_are_the_banks_own().await;
    let export = fixture.complete("TRANSACTIONS_EXPORT").await;
    assert_eq!(totals(&fixture.parts(&export).await), fixture.own_totals().await);
    let tables = fixture.bank.rows("SHOW TABLES").await;
    assert_eq!(tables, [[Some("transactions".to_owned())]], "Windlass created nothing there");
}

#[tokio::test]
async fn pruning_removes_everything_of_a_night_but_its_output() {
    let fixture = NightlyFixture::in_a_folder().await;
    fixture.complete("DAILY_REPORT").await;
    let export = fixture.complete("TRANSACTIONS_EXPORT").await;
    let kept = fixture.sandbox.run("prune").await.ok();
    assert!(said(&kept).contains("deleted 0 jobs, 0 chunks"), "{kept:?}");
    fixture.edit("retention = { chunks = \"7d\" }", "retention = { chunks = \"0s\" }");
    let pruned = fixture.sandbox.json("prune").await;
    assert_eq!(pruned["emptied"], 2, "{pruned:#}");
    for table in ["windlass_chunks", "windlass_parts", "windlass_ledger"] {
        let left: i64 = fixture.warehouse.one(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(left, 0, "{table}");
    }
    assert_eq!(totals(&fixture.parts(&export).await), fixture.own_totals().await);
    fixture.totals_are_the_banks_own().await;
}
