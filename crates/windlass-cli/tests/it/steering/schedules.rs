//! Two servers fire a schedule and are killed while they do. No time is fired twice or lost.

use crate::common::{CliSandbox, Data, eventually, raise};
use std::collections::BTreeSet;

const MINUTES: i64 = 120;

#[tokio::test]
async fn servers_killed_while_they_fire_lose_no_scheduled_time() {
    let data = Data::postgres().await.with_accounts(1).await;
    let schedule = "schedule = { cron = \"* * * * *\", missed = \"run-all\" }\n";
    let sandbox = CliSandbox::on(&data, &(raise(1) + schedule));
    let listed = sandbox.json("schedules").await;
    assert_eq!(listed[0]["nextTimes"].as_array().unwrap().len(), 3, "{listed:#}");
    // As if no process had run for two hours.
    let back =
        format!("UPDATE windlass_schedules SET next_at = next_at - interval '{MINUTES} minutes'");
    data.run(&back).await;
    let made = "SELECT count(*) FROM windlass_jobs";
    let serve = || sandbox.spawn("serve --concurrency 0 --listen 127.0.0.1:0");
    for round in 1..=4 {
        let servers = [serve(), serve()];
        let enough = MINUTES * round / 5;
        eventually("some are fired", async || data.number(made).await >= enough).await;
        servers.iter().for_each(|server| server.kill9());
    }
    let _servers = [serve(), serve()];
    let left = "SELECT count(*) FROM windlass_schedules WHERE next_at <= clock_timestamp()";
    eventually("all are fired", async || data.number(left).await == 0).await;
    let jobs = sandbox.json("jobs --limit 1000").await;
    let jobs = jobs.as_array().unwrap();
    let times: BTreeSet<_> =
        jobs.iter().map(|job| &job["request"]["idempotencyKey"]).map(ToString::to_string).collect();
    assert_eq!(times.len(), jobs.len(), "no time is fired twice");
    assert!(times.len() as i64 >= MINUTES, "{} of {MINUTES}", times.len());
    let gaps = "SELECT count(*) FROM (SELECT idempotency_key::timestamptz \
                - lag(idempotency_key::timestamptz) OVER (ORDER BY idempotency_key) AS gap \
                FROM windlass_jobs) AS pairs WHERE gap <> interval '1 minute'";
    assert_eq!(data.number(gaps).await, 0, "no time is left out");
    let listed = sandbox.run("schedules").await.ok().stdout;
    assert!(listed.contains("RAISE") && listed.contains("UTC"), "{listed}");
}
