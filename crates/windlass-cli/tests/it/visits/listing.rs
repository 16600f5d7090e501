//! The listing of chunks shows status, rows, times and progress of each chunk.

use crate::common::{eventually, text, worked_by};
use crate::visits::fixture::{VisitsFixture, logged};
use serde_json::Value as Json;

#[tokio::test]
async fn the_listing_shows_status_rows_times_and_progress() {
    let (fixture, id, worker) = VisitsFixture::at_half_way().await;

    // Progress within the blocked chunk: its two commits.
    let chunks = fixture.sandbox.chunks(&id).await;
    let done = format!("updated_date IS NOT NULL AND {}", VisitsFixture::within(&chunks[0]));
    let done = fixture.number(&format!("SELECT count(*) FROM maps WHERE {done}")).await;
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
        "SELECT count(*) FROM maps WHERE conflict_id IS NOT NULL AND {} AND \
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

/// The three lines that follow a chunk in the log: what it is expected to have, what is marked, what was updated.
#[tokio::test]
async fn the_log_tells_estimated_marked_and_updated_rows_of_each_chunk() {
    let fixture = VisitsFixture::new().await;
    let id = fixture.submit().await;
    let worker = fixture.sandbox.spawn(&format!("worker --job {id} --log-format json"));
    let log = worker.wait().await.ok().stderr;
    let chunks = fixture.sandbox.chunks(&id).await;
    for chunk in &chunks {
        let line = |message: &str| -> Json {
            let mut events = logged(&log, message);
            events.retain(|event| event["chunk"] == chunk["chunk"]);
            assert_eq!(events.len(), 1, "{message}: {events:#?}");
            assert_eq!((&events[0]["level"], &events[0]["job"]), (&"INFO".into(), &chunk["jobId"]));
            events.remove(0)
        };
        let values = async |column: &str| {
            let within = VisitsFixture::within(chunk);
            let values = format!("SELECT count(DISTINCT {column}) FROM maps");
            fixture.number(&format!("{values} WHERE conflict_id IS NOT NULL AND {within}")).await
        };
        let (dates, people) = (values("visit_date").await, values("ssn").await);
        let started = line("chunk started");
        assert_eq!(started["estimated_rows"], chunk["items"], "{started:#}");
        assert_eq!(started["keys"], format!("{dates} VisitDate, {people} SSN"), "{started:#}");
        assert_eq!(line("rows marked")["rows"], chunk["items"]);
        let completed = line("chunk completed");
        assert_eq!(completed["updated"], chunk["items"], "{completed:#}");
        assert!(completed["seconds"].is_f64(), "{completed:#}");
        let rows = (&chunk["rowsMarked"], &chunk["rowsUpdated"], &chunk["message"]);
        assert_eq!(rows, (&chunk["items"], &chunk["items"], &Json::Null), "{chunk:#}");
    }
}
