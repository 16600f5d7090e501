//! The night does not fail because of a few bad rows: they become dead letters, up to a budget of 0.01 %.

use crate::nightly::fixture::{DATE, NightlyFixture, ROWS};

/// Gives this number of rows an invalid date, which Parquet cannot represent.
async fn spoil(fixture: &NightlyFixture, rows: u32) {
    let spoil = "UPDATE transactions SET booked_at = '0000-00-00' WHERE id % 3 = 1 ORDER BY id";
    fixture.bank.run(&format!("SET sql_mode = ''; {spoil} LIMIT {rows}")).await;
}

#[tokio::test]
async fn a_bad_row_within_the_budget_is_a_dead_letter_of_the_export() {
    let fixture = NightlyFixture::in_a_folder().await;
    // While less than 20,000 rows are planned, one is allowed.
    spoil(&fixture, 1).await;
    let id = fixture.submit("TRANSACTIONS_EXPORT").await;
    fixture.sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    let job = fixture.sandbox.job(&id).await;
    assert_eq!(job["status"], "COMPLETED");
    let counts = (&job["items"]["processed"], &job["items"]["dead"]);
    assert_eq!(counts, (&(ROWS - 1).into(), &1.into()));
}

#[tokio::test]
async fn more_bad_rows_than_the_budget_pause_the_export_before_it_is_merged() {
    let fixture = NightlyFixture::in_a_folder().await;
    spoil(&fixture, 3).await;
    let id = fixture.submit("TRANSACTIONS_EXPORT").await;
    let paused = fixture.sandbox.run(&format!("worker --job {id}")).await;
    assert_eq!(paused.code, Some(4), "{paused:?}");
    let job = fixture.sandbox.job(&id).await;
    assert_eq!((&job["status"], &job["outputs"]), (&"PAUSED".into(), &serde_json::json!([])));
}

#[tokio::test]
async fn a_bad_row_of_the_report_is_a_dead_letter_and_the_totals_are_those_of_the_others() {
    let fixture = NightlyFixture::in_a_folder().await;
    let own = fixture.own_totals().await;
    // The least integer has no absolute value.
    fixture.edit("count(*) AS transactions", "count(*) + sum(abs(id) * 0) AS transactions");
    let least = "INSERT INTO transactions SELECT -9223372036854775808, branch, account, 1, booked_at, NULL \
                 FROM transactions LIMIT 1";
    fixture.bank.run(least).await;
    let run = fixture.sandbox.run(&format!("run DAILY_REPORT --param date={DATE}")).await;
    run.with_dead_letters();
    assert_eq!(fixture.loaded().await, own);

    // Repaired and redriven, the row is in the report, too.
    fixture.edit("count(*) + sum(abs(id) * 0) AS transactions", "count(*) AS transactions");
    let redriven = fixture.sandbox.json("dead redrive --type DAILY_REPORT").await;
    fixture.work(redriven[0]["jobId"].as_str().unwrap()).await;
    fixture.totals_are_the_banks_own().await;
}
