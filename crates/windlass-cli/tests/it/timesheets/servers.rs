//! Several servers share the queue without knowing of each other. No chunk is worked by two of them.

use crate::common::worked_by;
use crate::timesheets::fixture::{TimesheetsFixture, report, report_of};
use serde_json::json;

#[tokio::test]
async fn no_chunk_is_worked_twice_and_every_server_works_one() {
    let fixture = TimesheetsFixture::new(2500).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await, fixture.serve(1).await];
    // A gate in every chunk: each of the three servers takes one chunk and waits.
    let gates = fixture.first_keys("2025-01").await;
    gates.iter().for_each(|key| fixture.close("timesheets", *key));
    let id = servers[0].submit(&fixture.chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    fixture.held_up(3).await;
    let mut held = Vec::new();
    for server in &servers {
        held.extend(fixture.sandbox.held_by(&id, server.process.id()).await);
    }
    held.sort_unstable();
    held.dedup();
    assert_eq!(held.len(), 3, "each server has leased its own chunk: {held:?}");
    gates.iter().for_each(|key| fixture.open("timesheets", *key));

    let job = servers[1].is(&fixture.chief, &id, "COMPLETED").await;
    assert_eq!(job["items"]["processed"], 10_000);
    let chunks = fixture.sandbox.chunks(&id).await;
    assert_eq!(chunks.len(), 10);
    for chunk in &chunks {
        assert_eq!((&chunk["epoch"], &chunk["items"]), (&json!(1), &json!(1000)), "{chunk:#}");
        assert!(servers.iter().any(|server| worked_by(chunk, server.process.id())), "{chunk:#}");
    }
    // No record was passed to the program twice, and each is in the output once.
    let given = fixture.given(&id);
    assert_eq!((given.len(), given.values().max()), (10_000, Some(&1)));
    let mut rows: Vec<_> = servers[2].output(&fixture.chief, &id).await;
    rows.sort_by_key(|row| row["timesheet"].as_i64());
    rows.dedup_by_key(|row| row["timesheet"].as_i64());
    assert_eq!(rows.len(), 10_000);
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn no_job_is_worked_twice_by_idle_servers() {
    let fixture = TimesheetsFixture::new(50).await;
    let servers = [fixture.serve(2).await, fixture.serve(2).await, fixture.serve(2).await];
    let mut ids = Vec::new();
    for key in 1..=30 {
        let request = report_of("TIMESHEET_REPORT", "other", &[key]);
        ids.push(servers[key as usize % 3].submit(&fixture.chief, &request).await);
    }
    for (id, key) in ids.iter().zip(1..) {
        servers[0].is(&fixture.chief, id, "COMPLETED").await;
        assert_eq!(fixture.given(id), [(key, 1)].into(), "job {id}");
        let rows = servers[0].output(&fixture.chief, id).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
    }
    let again = "SELECT count(*) FROM windlass_chunks WHERE epoch <> 1";
    assert_eq!(fixture.number(again).await, 0, "chunks leased more than once");
}
