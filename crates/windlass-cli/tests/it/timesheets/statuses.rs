//! The statuses of a job and the transitions between them: real commands make each allowed transition, and all others
//! are refused.

use crate::common::said;
use crate::timesheets::fixture::{TimesheetsFixture, report, report_of};
use crate::timesheets::service::Server;
use serde_json::json;
use std::collections::BTreeSet;

/// Asserts that these commands are refused with the reason, by the command line and by the API, and change
/// nothing.
async fn refuses(
    fixture: &TimesheetsFixture,
    server: &Server,
    id: &str,
    status: &str,
    commands: &[&str],
) {
    for command in commands {
        let output = fixture.sandbox.run(&format!("{command} {id}")).await;
        assert_eq!(output.code, Some(2), "{command} while {status}: {output:?}");
        assert!(said(&output).contains(status), "{command} while {status}: {output:?}");
        let answer =
            server.post(&fixture.operator, &format!("jobs/{id}/{command}"), &json!({})).await;
        answer.refuses(409, &[status]);
        assert_eq!(server.job(&fixture.operator, id).await["status"], status, "{command}");
    }
}

#[tokio::test]
async fn every_allowed_status_transition_works_and_all_others_are_refused() {
    let fixture = TimesheetsFixture::new(1000).await;
    let desk = fixture.serve(0).await;
    let (chief, operator) = (&fixture.chief, &fixture.operator);

    // No worker runs: a job is QUEUED, and can be cancelled.
    let early = desk.submit(chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    assert_eq!(desk.job(operator, &early).await["status"], "QUEUED");
    refuses(&fixture, &desk, &early, "QUEUED", &["retry", "resume"]).await;
    assert_eq!(desk.steer(operator, &early, "cancel").await["status"], "CANCELLED");
    refuses(&fixture, &desk, &early, "CANCELLED", &["cancel", "retry", "resume", "pause"]).await;
    assert!(desk.job(operator, &early).await["startedAt"].is_null());

    // PROCESSING, and cancelled from there.
    let _worker = fixture.serve(1).await;
    fixture.close("timesheets", 1);
    let busy = desk.submit(chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    fixture.held_up(1).await;
    desk.is(operator, &busy, "PROCESSING").await;
    refuses(&fixture, &desk, &busy, "PROCESSING", &["retry", "resume"]).await;
    assert_eq!(desk.steer(operator, &busy, "cancel").await["status"], "CANCELLED");
    refuses(&fixture, &desk, &busy, "CANCELLED", &["cancel", "retry", "resume", "pause"]).await;
    fixture.open("timesheets", 1);

    // COMPLETED, which is final.
    let done = desk.submit(chief, &report_of("TIMESHEET_REPORT", "2025-01", &[1])).await;
    desk.is(operator, &done, "COMPLETED").await;
    refuses(&fixture, &desk, &done, "COMPLETED", &["cancel", "retry", "resume", "pause"]).await;

    // FAILED after its retries, or at once for a permanent error.
    fixture.break_employee(1).await;
    let summary = json!({"jobType": "MONTHLY_SUMMARY", "params": {"month": "2025-01"}});
    let failed = desk.submit(chief, &summary).await;
    desk.is(operator, &failed, "FAILED").await;
    refuses(&fixture, &desk, &failed, "FAILED", &["cancel", "resume", "pause"]).await;
    fixture.mend().await;
    fixture.data.run("ALTER TABLE summaries RENAME COLUMN hours TO hours_worked").await;
    let fatal = desk.submit(chief, &summary).await;
    let job = desk.is(operator, &fatal, "FAILED").await;
    assert!(job["error"].as_str().unwrap().contains("hours"), "{job:#}");
    let tries = "SELECT max(attempts) FROM windlass_chunks WHERE job_id =";
    assert_eq!(fixture.number(&format!("{tries} '{fatal}'")).await, 1, "a permanent error");

    let edges = |of: &str| {
        let sql = format!("SELECT DISTINCT edge FROM edges WHERE {of}");
        let data = &fixture.data;
        async move {
            let crate::common::Data::Postgres(database) = data else { panic!("not PostgreSQL") };
            let rows = database.client().await.query(&sql, &[]).await.unwrap();
            rows.iter().map(|row| row.get::<_, String>(0)).collect::<BTreeSet<_>>()
        }
    };
    let document = [
        "- > QUEUED",
        "QUEUED > PROCESSING",
        "QUEUED > CANCELLED",
        "PROCESSING > COMPLETED",
        "PROCESSING > FAILED",
        "PROCESSING > CANCELLED",
    ];
    assert_eq!(edges("true").await, document.map(str::to_owned).into());

    // Only a retry by a user leads back.
    fixture
        .data
        .run("ALTER TABLE summaries RENAME COLUMN hours_worked TO hours; DELETE FROM edges")
        .await;
    desk.steer(chief, &failed, "retry").await;
    desk.is(operator, &failed, "COMPLETED").await;
    let retried = ["FAILED > QUEUED", "QUEUED > PROCESSING", "PROCESSING > COMPLETED"];
    assert_eq!(edges(&format!("job = '{failed}'")).await, retried.map(str::to_owned).into());
}
