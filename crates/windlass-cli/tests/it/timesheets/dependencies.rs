//! A summary follows both reports of its month, and payslips follow a summary. Each is submitted once.

use crate::common::{Data, eventually};
use crate::timesheets::fixture::{TimesheetsFixture, report, report_of};
use serde_json::json;

#[tokio::test]
async fn the_last_report_of_a_month_triggers_the_summary_which_triggers_the_payslips() {
    let fixture = TimesheetsFixture::new(100).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let (chief, desk) = (&fixture.chief, &servers[0]);
    let first = desk.submit(chief, &report("LEAVE_REPORT", "2025-01")).await;
    desk.is(chief, &first, "COMPLETED").await;
    let other = desk.submit(chief, &report("TIMESHEET_REPORT", "2025-02")).await;
    desk.is(chief, &other, "COMPLETED").await;
    // Two reports of two months have ended. A dependent would be submitted in the same transaction.
    let summaries = "SELECT count(*) FROM windlass_jobs WHERE job_type = 'MONTHLY_SUMMARY'";
    assert_eq!(fixture.number(summaries).await, 0);

    let last = desk.submit(chief, &report("TIMESHEET_REPORT", "2025-01")).await;
    let summary = fixture.next_of(desk, "MONTHLY_SUMMARY", 0).await;
    let payslips = fixture.next_of(desk, "PAYSLIPS", 0).await;
    let job = desk.is(chief, &payslips, "COMPLETED").await;
    assert_eq!(job["request"]["params"], json!({"month": "2025-01"}));
    let graph = desk.get(chief, &format!("jobs/{summary}/dependencies")).await.is(200);
    let node = graph.as_array().unwrap().iter().find(|node| node["id"] == *summary).unwrap();
    let parents = node["after"].as_array().unwrap();
    assert_eq!(parents.len(), 2, "{graph:#}");
    assert!(parents.contains(&json!(first)) && parents.contains(&json!(last)), "{graph:#}");

    let wrong = "SELECT count(*) FROM employees e LEFT JOIN payslips p USING (employee_id) \
                 WHERE p.month IS DISTINCT FROM '2025-01' OR p.pay <> hourly_rate * ( \
                 (SELECT sum(hours) FROM timesheets t \
                  WHERE t.employee_id = e.employee_id AND t.month = p.month) + 8 * \
                 coalesce((SELECT sum(days) FROM leave l \
                  WHERE l.employee_id = e.employee_id AND l.month = p.month), 0))";
    assert_eq!(fixture.number(wrong).await, 0, "employees without their pay");
}

#[tokio::test]
async fn reports_that_end_simultaneously_on_two_servers_trigger_one_summary() {
    let fixture = TimesheetsFixture::new(100).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let chief = &fixture.chief;
    for round in 0..5 {
        let month = format!("round {round}");
        fixture.close("timesheets", 1);
        fixture.close("leave", 1);
        let parents = [
            servers[0].submit(chief, &report_of("TIMESHEET_REPORT", &month, &[1])).await,
            servers[1].submit(chief, &report_of("LEAVE_REPORT", &month, &[1])).await,
        ];
        fixture.held_up(2).await;
        // Each server works one. Neither can end it while its row is locked, and then both do.
        let Data::Postgres(database) = &fixture.data else { panic!("not PostgreSQL") };
        let lock = database.client().await;
        let [one, other] = &parents;
        let rows = format!("SELECT FROM windlass_jobs WHERE id IN ('{one}', '{other}')");
        lock.batch_execute(&format!("BEGIN; {rows} FOR UPDATE")).await.unwrap();
        fixture.open("timesheets", 1);
        fixture.open("leave", 1);
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("both completions wait", async || fixture.number(waiting).await >= 2).await;
        lock.batch_execute("COMMIT").await.unwrap();

        for id in &parents {
            servers[0].is(chief, id, "COMPLETED").await;
        }
        let summary = fixture.next_of(&servers[0], "MONTHLY_SUMMARY", round).await;
        let payslips = fixture.next_of(&servers[1], "PAYSLIPS", round).await;
        servers[0].is(chief, &payslips, "COMPLETED").await;
        let summary = servers[0].job(chief, &summary).await;
        assert_eq!(summary["request"]["params"], json!({"month": month}));
    }
    // No trigger is left, and none has fired twice.
    let dependencies = servers[0].get(&fixture.operator, "dependencies").await.is(200);
    assert_eq!(dependencies["waiting"], json!([]), "{dependencies:#}");
    for job_type in ["MONTHLY_SUMMARY", "PAYSLIPS"] {
        assert_eq!(servers[0].jobs(&fixture.operator, job_type).await.len(), 5, "{job_type}");
    }
}
