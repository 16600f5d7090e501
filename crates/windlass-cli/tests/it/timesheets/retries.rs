//! A failing chunk is tried three times with growing delays. Then its job fails with the reason, and a retry runs only
//! the failed chunks.

use crate::common::said;
use crate::timesheets::fixture::TimesheetsFixture;
use serde_json::json;

#[tokio::test]
async fn a_chunk_is_tried_three_times_with_growing_delays_and_then_fails_with_the_reason() {
    let fixture = TimesheetsFixture::new(2500).await;
    let servers = [fixture.serve(1).await, fixture.serve(1).await];
    let check = fixture.sandbox.json("check").await;
    for job_type in check["jobTypes"].as_array().unwrap() {
        let retry =
            json!({"attempts": 3, "backoff": "1s", "growth": "linear", "factor": 2.0, "max": "1m"});
        assert_eq!(job_type["definition"]["retry"], retry, "{job_type:#}");
        assert_eq!(job_type["definition"]["chunk"]["items"], 1000, "{job_type:#}");
    }

    fixture.break_employee(1500).await;
    let request = json!({"jobType": "MONTHLY_SUMMARY", "params": {"month": "2025-01"},
        "parallelSegments": 1});
    let id = servers[0].submit(&fixture.chief, &request).await;
    let job = servers[1].is(&fixture.chief, &id, "FAILED").await;
    let chunks = fixture.sandbox.chunks(&id).await;
    let of = |field: &str| chunks.iter().map(|chunk| chunk[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("status"), ["COMPLETED", "FAILED", "COMPLETED"]);
    assert_eq!(of("attempts"), [0, 3, 0]);
    assert_eq!(fixture.number("SELECT last_value FROM refusals").await, 3, "tries");
    let waits = |attempt: i64, seconds: i64| {
        format!(
            "SELECT count(*) FROM waits WHERE job = '{id}' AND attempt = {attempt} \
             AND wait >= {seconds} * interval '1 second'"
        )
    };
    assert_eq!(fixture.number(&waits(1, 1)).await, 1, "one second after the first");
    assert_eq!(fixture.number(&waits(2, 2)).await, 1, "two seconds after the second");
    let reason = "employee 1500 is being audited";
    assert!(job["error"].as_str().unwrap().contains(reason), "{job:#}");
    assert!(said(&fixture.sandbox.run(&format!("job {id}")).await).contains(reason));
    assert_eq!(fixture.number("SELECT count(*) FROM summaries").await, 1500);
    assert_eq!(
        servers[0].jobs(&fixture.operator, "PAYSLIPS").await.len(),
        0,
        "nothing follows yet"
    );

    fixture.mend().await;
    fixture.sandbox.run(&format!("retry {id}")).await.ok();
    servers[0].is(&fixture.chief, &id, "COMPLETED").await;
    assert_eq!(fixture.number("SELECT count(*) FROM summaries").await, 2500);
    for (before, after) in chunks.iter().zip(fixture.sandbox.chunks(&id).await) {
        let again = before["status"] == "FAILED";
        assert_eq!(before["epoch"] != after["epoch"], again, "{after:#}");
    }
    let payslips = fixture.next_of(&servers[0], "PAYSLIPS", 0).await;
    servers[0].is(&fixture.chief, &payslips, "COMPLETED").await;
    assert_eq!(fixture.number("SELECT count(*) FROM payslips").await, 2500);
    // The statement inserts into another table, whose rows do not show which employees were processed.
    let audit = fixture.sandbox.run(&format!("audit {id} --json")).await;
    assert_eq!(audit.code, Some(1), "{audit:?}");
    let audit = crate::common::parse(&audit);
    assert_eq!((&audit["verdict"], &audit["findings"]), (&json!("cannotBeJudged"), &json!([])));
}

#[tokio::test]
async fn linear_waits_are_one_two_and_three_seconds() {
    let fixture = TimesheetsFixture::new(2500).await;
    let config = fixture.sandbox.read("windlass.toml").replace("attempts = 3", "attempts = 4");
    fixture.sandbox.write("windlass.toml", &config);
    let server = fixture.serve(1).await;
    fixture.break_employee(1500).await;
    let request = json!({"jobType": "MONTHLY_SUMMARY", "params": {"month": "2025-01"},
        "parallelSegments": 1});
    let id = server.submit(&fixture.chief, &request).await;
    server.is(&fixture.chief, &id, "FAILED").await;
    assert_eq!(fixture.number("SELECT last_value FROM refusals").await, 4, "tries");
    for attempt in 1..=3 {
        // An exponential third wait would be four seconds.
        let waits = format!(
            "SELECT count(*) FROM waits WHERE job = '{id}' AND attempt = {attempt} \
             AND wait >= {attempt} * interval '1 second' AND most <= {attempt} * interval '1 second'"
        );
        assert_eq!(fixture.number(&waits).await, 1, "{attempt} seconds after attempt {attempt}");
    }
}
