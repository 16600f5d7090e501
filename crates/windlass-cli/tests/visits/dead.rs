//! A row that the statement cannot update sets aside its pair, and nothing else.

use crate::common::text;
use crate::world::{THIRD_COMMIT, World};

#[tokio::test]
async fn a_pair_that_cannot_be_updated_is_one_dead_letter() {
    let world = World::new().await;
    world.break_at(THIRD_COMMIT, "22000").await;
    let pair = "SELECT count(*) FROM visits WHERE conflict_id IS NOT NULL AND (visit_date, ssn) IN \
                (SELECT visit_date, ssn FROM broken JOIN visits USING (visit_id))";
    let pair = world.number(pair).await;
    assert!(pair > 1, "the pair has one row");
    let id = world.submit().await;
    world.complete(&id).await;

    let letters = world.sandbox.json(&format!("dead list --job {id}")).await;
    let letters = letters.as_array().unwrap();
    assert_eq!(letters.len(), 1, "{letters:#?}");
    // It keeps every row of the pair.
    let letter = text(&letters[0]["id"]);
    let shown = world.sandbox.run(&format!("dead show {letter}")).await.ok();
    assert_eq!(shown.stdout.matches("visit_id: ").count() as i64, pair, "{}", shown.stdout);
    assert!(shown.stdout.contains("is broken"), "{}", shown.stdout);
    assert_eq!((world.due().await, world.marked().await), (pair, 0));
    world.cannot_be_judged(&id, "since the key is not unique").await;

    world.mend().await;
    let redriven = world.sandbox.json(&format!("dead redrive --job {id}")).await;
    world.complete(&text(&redriven[0]["jobId"])).await;
    world.updated_once().await;
}
