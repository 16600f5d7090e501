//! A row that the statement cannot update makes its pair a dead letter, and affects no other row.

use crate::common::text;
use crate::visits::fixture::{THIRD_COMMIT, VisitsFixture};

#[tokio::test]
async fn a_pair_that_cannot_be_updated_is_one_dead_letter() {
    let fixture = VisitsFixture::new().await;
    fixture.break_at(THIRD_COMMIT, "22000").await;
    let pair = "SELECT count(*) FROM maps WHERE conflict_id IS NOT NULL AND (visit_date, ssn) IN \
                (SELECT visit_date, ssn FROM broken JOIN maps USING (visit_id))";
    let pair = fixture.number(pair).await;
    assert!(pair > 1, "the pair has one row");
    let id = fixture.submit().await;
    fixture.worker(&id).wait().await.with_dead_letters();

    let letters = fixture.sandbox.json(&format!("dead list --job {id}")).await;
    let letters = letters.as_array().unwrap();
    assert_eq!(letters.len(), 1, "{letters:#?}");
    // The letter contains every row of the pair.
    let letter = text(&letters[0]["id"]);
    let shown = fixture.sandbox.run(&format!("dead show {letter}")).await.ok();
    assert_eq!(shown.stdout.matches("  ID: ").count() as i64, pair, "{}", shown.stdout);
    assert!(shown.stdout.contains("is broken"), "{}", shown.stdout);
    assert_eq!((fixture.due().await, fixture.marked().await), (pair, 0));
    fixture.cannot_be_judged(&id, "since the key is not unique").await;

    fixture.mend().await;
    let redriven = fixture.sandbox.json(&format!("dead redrive --job {id}")).await;
    fixture.complete(&text(&redriven[0]["jobId"])).await;
    fixture.updated_once().await;
}
