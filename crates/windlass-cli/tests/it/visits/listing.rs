//! The listing of chunks shows status, rows, times and progress of each chunk.

use crate::common::{eventually, text, worked_by};
use crate::visits::fixture::VisitsFixture;
use serde_json::Value as Json;

#[tokio::test]
async fn the_listing_shows_status_rows_times_and_progress() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;

    // Progress within the blocked chunk: its two commits.
    let chunks = fixture.sandbox.chunks(&id).await;
    let done = format!("updated_date IS NOT NULL AND {}", VisitsFixture::within(&chunks[0]));
    let done = fixture.number(&format!("SELECT count(*) FROM visits WHERE {done}")).await;
    assert!((200..300).contains(&done), "{done} rows are updated");
    let mut running = Json::Null;
    eventually("the listing shows the progress of the chunk", async || {
        running = fixture.sandbox.chunks(&id).await[0].clone();
        running["counts"]["processed"] == done
    })
    .await;
    assert_eq!(running["status"], "PROCESSING");
    assert!(running["items"].as_i64() >= Some(500), "{running:#}");
    assert!(running["startedAt"].is_string() && running["finishedAt"].is_null(), "{running:#}");
    assert!(worked_by(&running, worker.id()), "{running:#}");
    // All keys up to the cursor are processed, and none after it.
    let (date, ssn) = (text(&running["cursor"][0]), text(&running["cursor"][1]));
    let astray = format!(
        "SELECT count(*) FROM visits WHERE conflict_id IS NOT NULL AND {} AND \
         (updated_date IS NOT NULL) <> ((visit_date, ssn) <= (date '{date}', '{ssn}'))",
        VisitsFixture::within(&running)
    );
    assert_eq!(fixture.number(&astray).await, 0, "{running:#}");

    fixture.open().await;
    worker.wait().await.ok();
    let chunks = fixture.sandbox.chunks(&id).await;
    for (number, chunk) in chunks.iter().enumerate() {
        assert_eq!((&chunk["jobId"], &chunk["chunk"]), (&id.as_str().into(), &number.into()));
        assert_eq!((&chunk["status"], &chunk["error"]), (&"COMPLETED".into(), &Json::Null));
        assert_eq!(chunk["counts"]["processed"], chunk["items"], "{chunk:#}");
        assert!(text(&chunk["finishedAt"]) > text(&chunk["startedAt"]), "{chunk:#}");
    }
}
