//! The submitter determines, once and for the whole job, which rows a job may reach.

use crate::common::eventually;
use crate::timesheets::fixture::{TimesheetsFixture, report};
use serde_json::{Value as Json, json};

/// The rows of a report: their number, counties and roles.
fn seen(rows: &[Json]) -> (usize, String) {
    let mut kinds: Vec<_> =
        rows.iter().map(|row| format!("{}/{}", row["county"], row["role"])).collect();
    kinds.sort_unstable();
    kinds.dedup();
    (rows.len(), kinds.join(" ").replace('"', ""))
}

const STAFF: &str = "county = 'Kent' AND visible_to = 'clerk'";

#[tokio::test]
async fn a_report_has_only_the_rows_of_the_submitters_county_and_role() {
    let fixture = TimesheetsFixture::new(200).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let clerk = &fixture.token("kent-clerk", "clerk", "Kent").await;
    let staff = fixture.number(&format!("SELECT count(*) FROM timesheets WHERE {STAFF}")).await;
    assert!(staff > 0);
    let forbidden = format!(
        "SELECT array_to_json(array_agg(timesheet_id)) FROM timesheets WHERE NOT ({STAFF})"
    );
    let crate::common::Data::Postgres(database) = &fixture.data else { panic!("not PostgreSQL") };
    let forbidden =
        database.client().await.query_one(&format!("SELECT ({forbidden})::text"), &[]).await;
    let forbidden: Json = serde_json::from_str(forbidden.unwrap().get(0)).unwrap();

    let everything = json!({"jobType": "TIMESHEET_REPORT"});
    let months = json!({"jobType": "TIMESHEET_REPORT",
        "filter": {"months": ["2025-01", "2025-02", "2025-03"]},
        "params": {"county": "Essex", "roles": ["manager"]}});
    let others = json!({"jobType": "TIMESHEET_REPORT", "ids": forbidden});
    for (request, rows) in [(everything, staff), (months, staff), (others, 0)] {
        let id = servers[0].submit(clerk, &request).await;
        let job = servers[1].is(clerk, &id, "COMPLETED").await;
        assert_eq!(job["items"]["processed"], rows, "{job:#}");
        let expected = if rows > 0 { "Kent/clerk" } else { "" };
        let output = servers[1].output(clerk, &id).await;
        assert_eq!(seen(&output), (rows as usize, expected.to_owned()));
    }
    // A request has no field that would extend it.
    for more in [json!({"claims": {"county": "Essex"}}), json!({"filter": {"county": ["Essex"]}})] {
        let mut request = report("TIMESHEET_REPORT", "2025-01");
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        servers[0].post(clerk, "jobs", &request).await.is(400);
    }

    let manager = &fixture.token("kent-manager", "clerk manager", "Kent").await;
    let id = servers[0].submit(manager, &report("TIMESHEET_REPORT", "2025-01")).await;
    servers[0].is(manager, &id, "COMPLETED").await;
    let all = fixture
        .number("SELECT count(*) FROM timesheets WHERE county = 'Kent' AND month = '2025-01'");
    let rows = seen(&servers[0].output(manager, &id).await);
    assert_eq!(rows, (all.await as usize, "Kent/clerk Kent/manager".to_owned()));
    // Not even a colleague of the same county sees the job, its chunks or its rows.
    for path in ["", "/output", "/chunks", "/events"] {
        assert_eq!(servers[0].get(clerk, &format!("jobs/{id}{path}")).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_submitter_without_a_county_is_refused() {
    let fixture = TimesheetsFixture::new(50).await;
    let server = fixture.serve(1).await;
    let nowhere = fixture.token("nowhere", "clerk", "").await;
    for job_type in ["TIMESHEET_REPORT", "LEAVE_REPORT", "MONTHLY_SUMMARY", "PAYSLIPS"] {
        let answer = server.post(&nowhere, "jobs", &report(job_type, "2025-01")).await;
        if job_type.ends_with("REPORT") {
            answer.refuses(403, &["claims.county"]);
        }
        let request = json!({"jobType": job_type, "params": {"month": "2025-01"}});
        server.post(&nowhere, "jobs", &request).await.refuses(403, &["claims.county"]);
    }
    // An operator manages jobs and may submit none; a stranger may do nothing.
    let request = report("TIMESHEET_REPORT", "2025-01");
    server.post(&fixture.operator, "jobs", &request).await.refuses(403, &["submit"]);
    assert_eq!(server.post("no-token", "jobs", &request).await.status, 401);
    let refused = fixture.sandbox.run("submit TIMESHEET_REPORT --claim roles=clerk").await;
    crate::common::refused(&refused, &["claims.county"]);
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_jobs").await, 0);
}

#[tokio::test]
async fn dependents_and_retries_of_a_report_stay_in_the_county() {
    let fixture = TimesheetsFixture::new(200).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let kent = &fixture.token("kent-clerk", "clerk", "Kent").await;
    let essex = &fixture.token("essex-clerk", "clerk", "Essex").await;
    // Parents with different identities do not trigger a common dependent.
    for (who, job_type) in [(essex, "TIMESHEET_REPORT"), (kent, "LEAVE_REPORT")] {
        let id = servers[0].submit(who, &report(job_type, "2025-01")).await;
        servers[0].is(who, &id, "COMPLETED").await;
    }
    assert_eq!(servers[0].jobs(&fixture.operator, "MONTHLY_SUMMARY").await.len(), 0);

    let broken = format!("SELECT min(employee_id) FROM employees WHERE {STAFF}");
    fixture.break_employee(fixture.number(&broken).await).await;
    servers[0].submit(kent, &report("TIMESHEET_REPORT", "2025-01")).await;
    let summary = fixture.next_of(&servers[0], "MONTHLY_SUMMARY", 0).await;
    let job = servers[0].is(kent, &summary, "FAILED").await;
    assert_eq!(job["submittedBy"], "kent-clerk");
    // An operator who retries a job does not lend it rights, with or without counties.
    fixture.mend().await;
    servers[1].steer(&fixture.operator, &summary, "retry").await;
    servers[1].is(kent, &summary, "COMPLETED").await;
    let payslips = fixture.next_of(&servers[0], "PAYSLIPS", 0).await;
    servers[0].is(kent, &payslips, "COMPLETED").await;
    let staff = fixture.number(&format!("SELECT count(*) FROM employees WHERE {STAFF}")).await;
    for table in ["summaries", "payslips"] {
        let of = format!("SELECT count(*) FROM {table} JOIN employees USING (employee_id)");
        assert_eq!(fixture.number(&of).await, staff, "{table}");
        assert_eq!(fixture.number(&format!("{of} WHERE {STAFF}")).await, staff, "{table}");
    }
}

#[tokio::test]
async fn a_redrive_stays_in_the_county_of_the_original_submitter() {
    let fixture = TimesheetsFixture::new(200).await;
    let server = fixture.serve(1).await;
    let kent = &fixture.token("kent-clerk", "clerk", "Kent").await;
    // A week with too many hours in every county, and two in Kent.
    let too_long = "UPDATE timesheets SET hours = 200 WHERE visible_to = 'clerk' AND timesheet_id IN (\
         SELECT min(timesheet_id) FROM timesheets WHERE visible_to = 'clerk' GROUP BY county UNION \
         SELECT max(timesheet_id) FROM timesheets WHERE visible_to = 'clerk' GROUP BY county)";
    fixture.data.run(too_long).await;
    let id = server.submit(kent, &json!({"jobType": "TIMESHEET_REPORT"})).await;
    let job = server.is(kent, &id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 2, "{job:#}");
    let mut letters = Json::Null;
    eventually("the letters are listed", async || {
        letters = server.get(kent, "dead-letters").await.is(200);
        letters.as_array().unwrap().len() == 2
    })
    .await;
    for letter in letters.as_array().unwrap() {
        assert_eq!(letter["record"]["county"], "Kent", "{letter:#}");
        assert!(letter.to_string().contains("a week of 200 hours"), "{letter:#}");
    }
    let essex = &fixture.token("essex-clerk", "clerk", "Essex").await;
    assert_eq!(server.get(essex, "dead-letters").await.is(200), json!([]));

    // One is repaired. The other is moved to Essex, so the redrive for Kent must not report it.
    fixture
        .data
        .run(
            "UPDATE timesheets SET hours = 40 WHERE hours > 168;
              UPDATE timesheets t SET employee_id = e.employee_id, county = e.county
              FROM employees e WHERE e.county = 'Essex' AND e.visible_to = 'clerk'
              AND t.timesheet_id = (SELECT max(timesheet_id) FROM timesheets
                                    WHERE county = 'Kent' AND visible_to = 'clerk')",
        )
        .await;
    let redriven =
        server.post(&fixture.operator, "dead-letters/redrive", &json!({"job": id})).await;
    let redriven = redriven.is(200)[0]["jobId"].as_str().unwrap().to_owned();
    server.is(&fixture.operator, &redriven, "COMPLETED").await;
    let rows = server.output(&fixture.operator, &redriven).await;
    assert_eq!(seen(&rows), (1, "Kent/clerk".to_owned()), "{rows:#?}");
}
