//! Pages: forms, dry run, filters, schedules, retries, dependencies, deadlines, limits.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, text};
use crate::dashboard::wallets_fixture::{server_with_dead_letters, take, wallets};
use serde_json::json;
use windlass_testkit::Browser;

#[tokio::test]
async fn a_dry_run_shows_before_and_after_and_changes_nothing() {
    let data = wallets().await;
    let server = TestServer::with(CliSandbox::on(&data, &take("")), 1).await;
    let browser = Browser::start(&server.url).await;
    browser.shows("/job-types", "Take a little from every wallet").await;
    browser.go("TAKE").await;
    browser.sees("exactly once").await;
    browser.fill("filter.counties", "Kent").await;
    browser.go("Dry run").await;
    browser
        .sees_all(&["The job would process 200 records.", "4990", "CHECK constraint failed"])
        .await;
    assert_eq!(data.number("SELECT count(*) FROM wallets WHERE amount % 5000 = 4990").await, 0);
    browser.go("Run now").await;
    browser.sees_all(&["Completed", "199\nprocessed"]).await;
    assert_eq!(data.number("SELECT count(*) FROM wallets WHERE amount = 4990").await, 199);
}

#[tokio::test]
async fn jobs_and_dead_letters_are_filtered() {
    let (_data, server, id) = server_with_dead_letters().await;
    let other = server.submit(json!({"jobType": "TAKE", "ids": [1]})).await;
    server.until(&other, "COMPLETED").await;
    let browser = Browser::start(&server.url).await;
    browser.open("/jobs?status=COMPLETED").await;
    let rows = "return document.querySelectorAll('main tbody tr').length";
    assert_eq!(browser.run(rows).await, json!(2));
    browser.shows("/jobs?status=FAILED", "No matching jobs.").await;
    browser.shows(&format!("/jobs/{id}?status=COMPLETED"), "40 chunks").await;
    browser.go("More chunks").await;
    browser.sees("After chunk").await;
    browser.shows("/dead-letters?error=check+CONSTRAINT", "By error").await;
    browser.shows("/jobs?status=NONSENSE", "NONSENSE").await;
    browser.go("Go to the overview").await;
    browser.sees_all(&["Last 24 hours", "2 jobs submitted: 2 completed"]).await;
}

#[tokio::test]
async fn a_schedule_is_paused_and_resumed() {
    let data = wallets().await;
    let schedule =
        "schedule = { cron = \"0 3 1 1 *\", timezone = \"Asia/Tokyo\", missed = \"skip\" }\n";
    let server = TestServer::start(CliSandbox::on(&data, &take(schedule))).await;
    let browser = Browser::start(&server.url).await;
    browser.shows("/schedules", "JST").await;
    browser.go("Pause").await;
    browser.sees("Paused").await;
    browser.go("Resume").await;
    browser.sees("JST").await;
}

#[tokio::test]
async fn a_failed_job_says_why_and_is_retried() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    data.run("ALTER TABLE wallets RENAME TO away").await;
    server.sandbox.run(&format!("worker --job {id}")).await;
    server.until(&id, "FAILED").await;
    let browser = Browser::start(&server.url).await;
    browser.open("/").await;
    browser.sees_all(&["Alerts", "1 failed"]).await;
    browser.shows(&format!("/jobs/{id}"), "wallets").await;
    data.run("ALTER TABLE away RENAME TO wallets").await;
    browser.go("Retry failed chunks").await;
    browser.sees("Queued").await;
    server.sandbox.run(&format!("worker --job {id}")).await.with_dead_letters();
    browser.sees("Completed").await;
}

#[tokio::test]
async fn dependent_jobs_are_shown_as_a_graph() {
    let data = wallets().await;
    let after = take("").replace("jobs.TAKE", "jobs.SUM_UP");
    let rule = "[[dependencies]]\njob = \"SUM_UP\"\nafter = [\"TAKE\"]\n";
    let server = TestServer::with(CliSandbox::on(&data, &(take("") + &after + rule)), 2).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&server.url).await;
    browser.shows(&format!("/jobs/{id}"), "Dependencies").await;
    let boxes = "return [...document.querySelectorAll('.graph a')].map(a => a.textContent)";
    let boxes = browser.run(boxes).await;
    assert!(
        text(&boxes[0]).starts_with("TAKE") && text(&boxes[1]).starts_with("SUM_UP"),
        "{boxes}"
    );
    let to = browser.run("return document.querySelectorAll('.graph a')[1].href.baseVal").await;
    browser.open(&text(&to)).await;
    browser.sees_all(&["SUM_UP", "Completed"]).await;
}

#[tokio::test]
async fn a_job_that_will_miss_its_deadline_is_marked() {
    let data = wallets().await;
    let schedule = "throughput = { items_per_second = 1 }\n\
        schedule = { cron = \"0 3 1 1 *\", deadline = \"80s\", missed = \"run-once\" }\n";
    let sandbox = CliSandbox::on(&data, &take(schedule));
    sandbox.run("schedules").await.ok();
    // The schedule was due ten seconds ago.
    let store = rusqlite::Connection::open(sandbox.path("windlass.db")).unwrap();
    let past = "UPDATE windlass_schedules SET next_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 10000";
    store.execute(past, []).unwrap();
    let server = TestServer::with(sandbox, 1).await;
    let browser = Browser::start(&server.url).await;
    browser.shows("/", "At risk: due").await;
    browser.go("TAKE").await;
    browser.sees_all(&["At risk: due", "remaining, until"]).await;
    // After the deadline the job is overdue.
    browser.sees("Overdue: was due").await;
}

#[tokio::test]
async fn a_job_type_is_limited_and_stopped_from_its_page() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let browser = Browser::start(&server.url).await;
    browser.open("/job-types/TAKE").await;
    browser.press("Throughput…").await;
    browser.fill("concurrency", "3").await;
    browser.fill("rate", "1,500").await;
    browser.go("Apply").await;
    let said = async || {
        let controls = server.get("/api/v1/throughput").await.is(200);
        controls.as_array().unwrap().iter().find(|said| said["subject"] == "TAKE").cloned().unwrap()
    };
    assert_eq!((&said().await["concurrency"], &said().await["rate"]), (&json!(3), &json!(1500)));
    browser.press("Throughput…").await;
    browser.sees("Items per second now 1,500").await;
    browser.press("Stop this job type…").await;
    browser.go("Stop job type").await;
    browser.sees("This job type is stopped").await;
    assert_eq!(said().await["stopped"], true);
    browser.go("Start job type").await;
    browser.misses("This job type is stopped").await;
    browser.press("Throughput…").await;
    browser.fill("rate", "much").await;
    browser.go("Apply").await;
    browser.sees("at least 1").await;
}

#[tokio::test]
async fn a_job_is_found_by_its_id() {
    let (_data, server, id) = server_with_dead_letters().await;
    let browser = Browser::start(&server.url).await;
    for part in [id.as_str(), &id[..30], &id[id.len() - 8..]] {
        browser.open("/jobs").await;
        browser.fill("id", part).await;
        browser.go("Find").await;
        browser.is_at(&format!("/jobs/{id}")).await;
    }
    browser.open("/jobs").await;
    browser.fill("id", "ffffffff").await;
    browser.go("Find").await;
    browser.sees("ffffffff").await;
    let field = "return [document.querySelector('[name=id]').value, document.querySelector('.field-error').innerText]";
    let shown = browser.run(field).await;
    assert_eq!(shown[0], "ffffffff");
    assert!(text(&shown[1]).contains("ffffffff"), "{shown}");
}
