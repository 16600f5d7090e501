//! At 03:00 in Tokyo, each night has one job of each type, however often the schedule is fired.

use crate::common::{eventually, text};
use crate::nightly::fixture::NightlyFixture;

#[tokio::test]
async fn a_night_fired_twice_is_one_job() {
    let fixture = NightlyFixture::in_a_folder().await;
    let schedules = fixture.sandbox.json("schedules").await;
    for schedule in schedules.as_array().unwrap() {
        let next = text(&schedule["nextTimes"][0]);
        assert!(next.contains("18:00:00") || next.contains("03:00:00"), "{schedule:#}");
    }
    // As if last night's time had come just now.
    let back = "UPDATE windlass_schedules SET next_at = next_at - interval '1 day'";
    let left = "SELECT count(*) FROM windlass_schedules WHERE next_at <= clock_timestamp()";
    let fired = async || fixture.warehouse.one::<i64>(left).await == 0;
    fixture.warehouse.run(back).await;
    let server = fixture.sandbox.spawn("serve --concurrency 4 --listen 127.0.0.1:0");
    eventually("both are fired", fired).await;
    let jobs = fixture.sandbox.json("jobs").await;
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 2, "{jobs:#?}");
    for job in jobs {
        let id = text(&job["id"]);
        fixture.sandbox.completed(&id).await;
        // 03:00 in Tokyo is 18:00 of the previous day in UTC.
        let key = text(&job["request"]["idempotencyKey"]);
        assert!(key.contains("T18:00:00"), "{key}");
        let night =
            format!("SELECT (('{key}'::timestamptz AT TIME ZONE 'Asia/Tokyo')::date)::text");
        let date: String = fixture.warehouse.one(&night).await;
        assert_eq!(job["request"]["params"]["date"], date);
        let loaded = format!("SELECT count(*) FROM daily_report WHERE date = '{date}'");
        if job["jobType"] == "DAILY_REPORT" {
            assert!(fixture.warehouse.one::<i64>(&loaded).await > 100);
        }
    }
    let chunks = async || {
        let mut all = Vec::new();
        for job in jobs {
            all.push(fixture.sandbox.chunks(&text(&job["id"])).await);
        }
        all
    };
    let before = chunks().await;

    // A server dies after it submitted the jobs and before it recorded that. The next one fires the same night again.
    server.kill9();
    server.wait().await;
    fixture.warehouse.run(back).await;
    let _server = fixture.sandbox.spawn("serve --concurrency 4 --listen 127.0.0.1:0");
    eventually("both are fired again", fired).await;
    assert_eq!(fixture.sandbox.json("jobs").await.as_array().unwrap().len(), 2);
    assert_eq!(chunks().await, before, "nothing was done twice");
}
