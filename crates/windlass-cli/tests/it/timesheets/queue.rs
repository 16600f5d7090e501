//! Requests, schedules and dependencies submit into one queue, which is worked by priority and then by
//! age.

use crate::common::text;
use crate::timesheets::fixture::{TimesheetsFixture, report_of};
use serde_json::{Value as Json, json};

fn with_priority(mut request: Json, priority: u8) -> Json {
    request["priority"] = json!(priority);
    request
}

#[tokio::test]
async fn the_next_job_is_the_oldest_of_the_highest_priority_from_any_submitter() {
    let fixture = TimesheetsFixture::new(50).await;
    // One slot in total. The other process accepts requests and runs schedules too.
    let (desk, worker) = (fixture.serve(0).await, fixture.serve(1).await);
    let chief = &fixture.chief;
    let leave = report_of("LEAVE_REPORT", "2025-01", &[1]);
    let leave = desk.submit(chief, &leave).await;
    desk.is(chief, &leave, "COMPLETED").await;

    // The other parent of the summary occupies the slot, and the next job in the queue will occupy it after that. So
    // the summary is submitted while nothing is leased.
    fixture.close("timesheets", 1);
    fixture.close("timesheets", 2);
    desk.submit(chief, &report_of("TIMESHEET_REPORT", "2025-01", &[1])).await;
    fixture.held_up(1).await;
    let holder = with_priority(report_of("TIMESHEET_REPORT", "holder", &[2]), 7);
    let holder = desk.submit(chief, &holder).await;
    let planned = |job: &Json| job["chunks"]["total"] == 1;
    desk.until(chief, &holder, "is planned", planned).await;
    fixture.open("timesheets", 1);
    let by_dependency = fixture.next_of(&desk, "MONTHLY_SUMMARY", 0).await;
    desk.until(chief, &holder, "is being worked", |job| job["chunks"]["processing"] == 1).await;
    fixture.held_up(1).await;

    let mut requested = Vec::new();
    for (key, priority) in [(3, 3), (4, 5), (5, 7), (6, 3), (7, 7)] {
        let request = with_priority(report_of("TIMESHEET_REPORT", "other", &[key]), priority);
        requested.push(desk.submit(chief, &request).await);
    }
    let by_clock = fixture.nightfall(&desk).await;
    let late = with_priority(report_of("TIMESHEET_REPORT", "other", &[8]), 5);
    let late = desk.submit(chief, &late).await;
    let [low, middle, high, low_too, high_too] = requested.try_into().unwrap();
    let expected = [high, high_too, by_dependency, middle, by_clock, late, low, low_too];
    // The worker may have leased some of them ahead of its slot.
    for id in &expected {
        let job = desk.until(&fixture.operator, id, "is planned", planned).await;
        assert_eq!((&job["items"]["processed"], &job["finishedAt"]), (&json!(0), &Json::Null));
    }

    // Two of the reports stop at their gates, so that the jobs before them are worked and those after them are not.
    let [high, high_too, by_dependency, middle, by_clock, late, low, low_too] = &expected;
    fixture.close("timesheets", 4);
    fixture.close("timesheets", 8);
    fixture.open("timesheets", 2);
    fixture.held_up_at("timesheets", 4).await;
    for id in [high, high_too, by_dependency] {
        desk.is(&fixture.operator, id, "COMPLETED").await;
    }
    let waiting = desk.job(&fixture.operator, by_clock).await;
    assert_eq!(waiting["items"]["processed"], 0, "the report before it occupies the slot");
    fixture.open("timesheets", 4);
    fixture.held_up_at("timesheets", 8).await;
    for id in [middle, by_clock] {
        desk.is(&fixture.operator, id, "COMPLETED").await;
    }
    fixture.open("timesheets", 8);
    for id in [late, low, low_too] {
        desk.is(&fixture.operator, id, "COMPLETED").await;
    }
    for id in &expected {
        let chunks = fixture.sandbox.chunks(id).await;
        assert_eq!(chunks.len(), 1);
        assert!(crate::common::worked_by(&chunks[0], worker.process.id()), "{chunks:#?}");
    }
    let mut reports = fixture.given_jobs();
    reports.retain(|id| expected.contains(id));
    assert_eq!(reports, [high, high_too, middle, late, low, low_too].map(String::clone));

    let submitters = |id: &str| {
        let (desk, fixture, id) = (&desk, &fixture, id.to_owned());
        async move { text(&desk.job(&fixture.operator, &id).await["submittedBy"]) }
    };
    assert_eq!(
        submitters(&expected[2]).await,
        "head-office",
        "the summary has the identity of its parents"
    );
    assert_ne!(submitters(&expected[4]).await, "head-office", "the nightly job has no submitter");
}
