//! The progress of a report shows after each chunk of a thousand rows.

use crate::timesheets::fixture::{TimesheetsFixture, report};
use serde_json::Value as Json;

#[tokio::test]
async fn progress_increases_after_every_chunk() {
    let fixture = TimesheetsFixture::new(2500).await;
    let (desk, _worker) = (fixture.serve(0).await, fixture.serve(1).await);
    let gates = fixture.first_keys("2025-02").await;
    gates.iter().for_each(|key| fixture.close("timesheets", *key));
    let id = desk.submit(&fixture.chief, &report("TIMESHEET_REPORT", "2025-02")).await;
    let mut seen = Vec::new();
    for (chunk, gate) in gates.iter().enumerate() {
        fixture.held_up(1).await;
        let done = chunk as i64 * 1000;
        // The next chunk begins while the one before is completed.
        let shows =
            |job: &Json| job["items"]["processed"] == done && job["chunks"]["completed"] == chunk;
        let job = desk.until(&fixture.chief, &id, "the previous chunk shows", shows).await;
        // The total is known when planning is complete. Progress never exceeds what is committed.
        assert_eq!(job["items"]["total"], 10_000, "{job:#}");
        assert_eq!((&job["status"], &job["chunks"]["total"]), (&"PROCESSING".into(), &10.into()));
        seen.push(fixture.sandbox.job(&id).await["items"]["processed"].clone());
        fixture.open("timesheets", *gate);
    }
    let job = desk.is(&fixture.chief, &id, "COMPLETED").await;
    seen.push(job["items"]["processed"].clone());
    let expected: Vec<_> = (0..=10).map(|chunk| Json::from(chunk * 1000)).collect();
    assert_eq!(seen, expected, "another process shows the same");
}

#[tokio::test]
async fn the_progress_in_the_events_of_a_job_never_decreases() {
    let fixture = TimesheetsFixture::new(2500).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let id = servers[0].submit(&fixture.chief, &report("TIMESHEET_REPORT", "2025-03")).await;
    // The stream ends with the job.
    let events = servers[1].get(&fixture.chief, &format!("jobs/{id}/events")).await;
    assert_eq!(events.status, 200);
    let mut before = 0;
    for event in events.text.split("\n\n").filter(|event| event.starts_with("event: job\n")) {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let job: Json = serde_json::from_str(data).unwrap();
        let now = job["items"]["processed"].as_i64().unwrap();
        assert!(now >= before, "{now} after {before}");
        assert_eq!(now % 1000, 0, "a chunk is committed as a whole");
        before = now;
    }
    assert_eq!(before, 10_000, "{}", events.text);
}
