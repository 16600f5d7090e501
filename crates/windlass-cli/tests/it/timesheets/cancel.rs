//! A job that is cancelled stops between two commits, and leaves no output behind.

use crate::common::eventually;
use crate::timesheets::fixture::{TimesheetsFixture, report};
use crate::timesheets::service::Server;

/// A report with three chunks done and the fourth held up; its server, another one, and its gate.
async fn in_the_fourth_chunk(fixture: &TimesheetsFixture) -> (String, [Server; 2], i64) {
    let servers = [fixture.serve(0).await, fixture.serve(1).await];
    let gate = fixture.first_keys("2025-01").await[3];
    fixture.close("timesheets", gate);
    let id = servers[0].submit(&fixture.chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    fixture.held_up(1).await;
    let done = |job: &serde_json::Value| job["items"]["processed"] == 3000;
    servers[0].until(&fixture.chief, &id, "three chunks are done", done).await;
    (id, servers, gate)
}

#[tokio::test]
async fn nothing_is_committed_or_begun_after_a_cancellation() {
    let fixture = TimesheetsFixture::new(2500).await;
    let (id, servers, gate) = in_the_fourth_chunk(&fixture).await;
    let job = servers[0].steer(&fixture.chief, &id, "cancel").await;
    assert_eq!(job["status"], "CANCELLED");
    fixture.open("timesheets", gate);
    // The slot is free when this has run, and whatever was left of the other would have been before.
    let next = servers[0].submit(&fixture.chief, &report("LEAVE_REPORT", "2025-01")).await;
    servers[0].is(&fixture.chief, &next, "COMPLETED").await;

    let job = servers[0].job(&fixture.chief, &id).await;
    assert_eq!((&job["status"], &job["items"]["processed"]), (&"CANCELLED".into(), &3000.into()));
    assert_eq!(job["chunks"]["cancelled"], 7, "{job:#}");
    assert!(job["finishedAt"].is_string(), "{job:#}");
    let given = fixture.given(&id);
    assert!(given.keys().all(|key| *key < gate + 1000), "the fifth chunk was begun");
    // The chunk at work came back from the program after the cancellation: it may commit no more.
    let rows = servers[0].output(&fixture.chief, &id).await;
    let late = rows.iter().filter(|row| row["timesheet"].as_i64() >= Some(gate)).count();
    assert_eq!(late, 0, "rows committed after the cancellation");
    let follows = servers[0].jobs(&fixture.operator, "MONTHLY_SUMMARY").await;
    assert_eq!(follows.len(), 0, "a cancelled parent triggers nothing");
}

#[tokio::test]
async fn the_output_of_a_cancelled_job_is_gone() {
    let fixture = TimesheetsFixture::new(2500).await;
    let (id, servers, gate) = in_the_fourth_chunk(&fixture).await;
    assert_eq!(servers[0].output(&fixture.chief, &id).await.len(), 3000);
    servers[0].steer(&fixture.chief, &id, "cancel").await;
    fixture.open("timesheets", gate);
    eventually("the output is gone", async || {
        fixture.sandbox.run(&format!("output {id}")).await.ok().stdout.is_empty()
    })
    .await;
    assert_eq!(servers[0].output(&fixture.chief, &id).await.len(), 0);
}
