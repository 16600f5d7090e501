//! A cancelled job stops between two commits and leaves no output.

use crate::common::eventually;
use crate::timesheets::fixture::{TimesheetsFixture, report};
use crate::timesheets::service::Server;

/// A report with three completed chunks and the fourth blocked: its id, its server and another one, and the gate.
async fn in_the_fourth_chunk(fixture: &TimesheetsFixture) -> (String, [Server; 2], i64) {
    let servers = [fixture.serve(0).await, fixture.serve(1).await];
    let gate = fixture.first_keys("2025-01").await[3];
    fixture.close("timesheets", gate);
    let id = servers[0].submit(&fixture.chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    fixture.held_up(1).await;
    let done = |job: &serde_json::Value| job["items"]["processed"] == 3000;
    servers[0].until(&fixture.chief, &id, "three chunks are completed", done).await;
    (id, servers, gate)
}

#[tokio::test]
async fn nothing_is_committed_or_started_after_a_cancellation() {
    let fixture = TimesheetsFixture::new(2500).await;
    let (id, servers, gate) = in_the_fourth_chunk(&fixture).await;
    let job = servers[0].steer(&fixture.chief, &id, "cancel").await;
    assert_eq!(job["status"], "CANCELLED");
    fixture.open("timesheets", gate);
    // When this job has run, the slot is free, so anything left of the other job would have run before it.
    let next = servers[0].submit(&fixture.chief, &report("LEAVE_REPORT", "2025-01")).await;
    servers[0].is(&fixture.chief, &next, "COMPLETED").await;

    let job = servers[0].job(&fixture.chief, &id).await;
    assert_eq!((&job["status"], &job["items"]["processed"]), (&"CANCELLED".into(), &3000.into()));
    assert_eq!(job["chunks"]["cancelled"], 7, "{job:#}");
    assert!(job["finishedAt"].is_string(), "{job:#}");
    let given = fixture.given(&id);
    assert!(
        given.keys().all(|key| *key < gate + 1000),
        "no record of the fifth chunk was processed"
    );
    // The program answered for the current chunk after the cancellation, so its commit must be refused.
    let rows = servers[0].output(&fixture.chief, &id).await;
    let late = rows.iter().filter(|row| row["timesheet"].as_i64() >= Some(gate)).count();
    assert_eq!(late, 0, "rows committed after the cancellation");
    let follows = servers[0].jobs(&fixture.operator, "MONTHLY_SUMMARY").await;
    assert_eq!(follows.len(), 0, "a cancelled parent triggers nothing");
}

#[tokio::test]
async fn the_output_of_a_cancelled_job_is_deleted() {
    let fixture = TimesheetsFixture::new(2500).await;
    let (id, servers, gate) = in_the_fourth_chunk(&fixture).await;
    assert_eq!(servers[0].output(&fixture.chief, &id).await.len(), 3000);
    servers[0].steer(&fixture.chief, &id, "cancel").await;
    fixture.open("timesheets", gate);
    eventually("the output is deleted", async || {
        fixture.sandbox.run(&format!("output {id}")).await.ok().stdout.is_empty()
    })
    .await;
    assert_eq!(servers[0].output(&fixture.chief, &id).await.len(), 0);
}
