//! The pages one after another: what a form is made of, a dry run, a search, schedules.

use crate::api::served::Served;
use crate::common::{CliSandbox, text};
use crate::dashboard::fixture::{savings_accounts, take, with_letters};
use serde_json::json;
use windlass_testkit::Browser;

#[tokio::test]
async fn a_dry_run_shows_before_and_after_and_changes_nothing() {
    let data = savings_accounts().await;
    let served = Served::with(CliSandbox::on(&data, &take("")), 1).await;
    let browser = Browser::start(&served.url).await;
    browser.open("/job-types").await;
    browser.sees("Debit every account").await;
    browser.go("TAKE").await;
    browser.sees("exactly once").await;
    browser.fill("filter.counties", "Kent").await;
    browser.go("Dry run: change nothing, show a sample").await;
    browser.sees("It would reach 200 records.").await;
    browser.sees("4990").await;
    browser.sees("CHECK constraint failed").await;
    assert_eq!(data.number("SELECT count(*) FROM savings WHERE amount % 5000 = 4990").await, 0);
    browser.go("Run it now").await;
    browser.sees("Completed").await;
    browser.sees("199\nprocessed").await;
    assert_eq!(data.number("SELECT count(*) FROM savings WHERE amount = 4990").await, 199);
}

#[tokio::test]
async fn jobs_and_letters_are_found() {
    let (_data, served, id) = with_letters().await;
    let other = served.submit(json!({"jobType": "TAKE", "ids": [1]})).await;
    served.until(&other, "COMPLETED").await;
    let browser = Browser::start(&served.url).await;
    browser.open("/jobs?status=COMPLETED").await;
    let rows = "return document.querySelectorAll('main tbody tr').length";
    assert_eq!(browser.run(rows).await, json!(2));
    browser.open("/jobs?status=FAILED").await;
    browser.sees("No such job.").await;
    browser.open(&format!("/jobs/{id}?status=COMPLETED")).await;
    browser.sees("40 chunks").await;
    browser.go("More chunks").await;
    browser.sees("After chunk").await;
    browser.open("/dead-letters?error=check+CONSTRAINT").await;
    browser.sees("By error").await;
    browser.open("/jobs?status=NONSENSE").await;
    browser.sees("NONSENSE").await;
    browser.go("To the overview").await;
    browser.sees("The last 24 hours").await;
    browser.sees("2 jobs submitted: 2 completed").await;
}

#[tokio::test]
async fn a_schedule_is_paused_and_resumed() {
    let data = savings_accounts().await;
    let schedule =
        "schedule = { cron = \"0 3 1 1 *\", timezone = \"Asia/Tokyo\", missed = \"skip\" }\n";
    let served = Served::start(CliSandbox::on(&data, &take(schedule))).await;
    let browser = Browser::start(&served.url).await;
    browser.open("/schedules").await;
    browser.sees("JST").await;
    browser.go("Pause").await;
    browser.sees("Paused").await;
    browser.go("Resume").await;
    browser.sees("JST").await;
}

#[tokio::test]
async fn a_failed_job_says_why_and_is_retried() {
    let data = savings_accounts().await;
    let served = Served::start(CliSandbox::on(&data, &take(""))).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    data.run("ALTER TABLE savings RENAME TO away").await;
    served.sandbox.run(&format!("worker --job {id}")).await;
    served.until(&id, "FAILED").await;
    let browser = Browser::start(&served.url).await;
    browser.open("/").await;
    browser.sees("What went wrong").await;
    browser.sees("1 failed").await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("savings").await;
    data.run("ALTER TABLE away RENAME TO savings").await;
    browser.go("Retry what failed").await;
    browser.sees("Queued").await;
    served.sandbox.run(&format!("worker --job {id}")).await.ok();
    browser.sees("Completed").await;
}

#[tokio::test]
async fn jobs_that_come_after_one_another_are_a_graph() {
    let data = savings_accounts().await;
    let after = take("").replace("jobs.TAKE", "jobs.SUM_UP");
    let rule = "[[dependencies]]\njob = \"SUM_UP\"\nafter = [\"TAKE\"]\n";
    let served = Served::with(CliSandbox::on(&data, &(take("") + &after + rule)), 2).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("Comes after, comes before").await;
    let boxes = "return [...document.querySelectorAll('.graph a')].map(a => a.textContent)";
    let boxes = browser.run(boxes).await;
    assert!(
        text(&boxes[0]).starts_with("TAKE") && text(&boxes[1]).starts_with("SUM_UP"),
        "{boxes}"
    );
    let to = browser.run("return document.querySelectorAll('.graph a')[1].href.baseVal").await;
    browser.open(&text(&to)).await;
    browser.sees("SUM_UP").await;
    browser.sees("Completed").await;
}

#[tokio::test]
async fn a_job_that_will_be_late_says_so() {
    let data = savings_accounts().await;
    let schedule = "throughput = { items_per_second = 5 }\n\
        schedule = { cron = \"0 3 1 1 *\", deadline = \"30s\", missed = \"run-once\" }\n";
    let sandbox = CliSandbox::on(&data, &take(schedule));
    sandbox.run("schedules").await.ok();
    // It should have been submitted ten seconds ago.
    let store = rusqlite::Connection::open(sandbox.path("windlass.db")).unwrap();
    let past = "UPDATE windlass_schedules SET next_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 10000";
    store.execute(past, []).unwrap();
    let served = Served::with(sandbox, 1).await;
    let browser = Browser::start(&served.url).await;
    browser.open("/").await;
    browser.sees("At risk: due").await;
    browser.go("TAKE").await;
    browser.sees("At risk: due").await;
    browser.sees("left, until").await;
    // When its time has passed, it is not a risk any more.
    browser.sees("Late: was due").await;
}

#[tokio::test]
async fn a_job_type_is_limited_and_stopped_from_its_page() {
    let data = savings_accounts().await;
    let served = Served::start(CliSandbox::on(&data, &take(""))).await;
    let browser = Browser::start(&served.url).await;
    browser.open("/job-types/TAKE").await;
    browser.press("Throughput…").await;
    browser.fill("concurrency", "3").await;
    browser.fill("rate", "1,500").await;
    browser.go("Set").await;
    let said = async || {
        let controls = served.get("/api/v1/throughput").await.is(200);
        controls.as_array().unwrap().iter().find(|said| said["subject"] == "TAKE").cloned().unwrap()
    };
    assert_eq!((&said().await["concurrency"], &said().await["rate"]), (&json!(3), &json!(1500)));
    browser.press("Throughput…").await;
    browser.sees("Items a second (now 1,500)").await;
    browser.press("Stop this job type…").await;
    browser.go("Stop it").await;
    browser.sees("This job type is stopped").await;
    assert_eq!(said().await["stopped"], true);
    browser.go("Start it again").await;
    browser.misses("This job type is stopped").await;
    browser.press("Throughput…").await;
    browser.fill("rate", "much").await;
    browser.go("Set").await;
    browser.sees("About rate:").await;
    browser.sees("a number from 1").await;
}
