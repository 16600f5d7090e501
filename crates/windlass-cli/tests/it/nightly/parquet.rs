//! PyArrow reads the report and the parts: the same schema, rows and sums.

use crate::nightly::fixture::{NightlyFixture, ROWS};
use crate::nightly::reading::totals;
use serde_json::json;
use windlass_testkit::Moto;

async fn are_read_back(fixture: NightlyFixture) {
    fixture.complete("DAILY_REPORT").await;
    let export = fixture.complete("TRANSACTIONS_EXPORT").await;
    let own = fixture.own_totals().await;

    let report = fixture.report().await;
    assert_eq!(totals(&report), own);
    let schema = json!([
        ["branch", "string", true],
        ["transactions", "int64", true],
        ["total", "decimal128(24, 2)", true],
        ["largest", "decimal128(12, 2)", true],
        ["last_booked", "timestamp[us]", true],
    ]);
    assert_eq!(report["schema"], schema);

    let parts = fixture.parts(&export).await;
    assert_eq!(totals(&parts), own);
    assert_eq!((&parts["count"], &parts["distinct"]), (&json!(ROWS), &json!(ROWS)));
    assert_eq!(parts["manifest"]["totals"]["rows"], ROWS);
    let schema = json!([
        ["id", "int64", false],
        ["branch", "string", false],
        ["account", "string", false],
        ["amount", "decimal128(12, 2)", true],
        ["booked_at", "timestamp[us]", false],
        ["memo", "string", true],
    ]);
    assert_eq!(parts["schema"], schema);
    fixture.totals_are_the_banks_own().await;
    for id in [&export, &fixture.complete("DAILY_REPORT").await] {
        fixture.sandbox.prove(id).await;
    }
}

#[tokio::test]
async fn from_a_folder() {
    are_read_back(NightlyFixture::in_a_folder().await).await;
}

#[tokio::test]
async fn from_s3() {
    are_read_back(NightlyFixture::in_a_bucket(Moto::shared()).await).await;
}
