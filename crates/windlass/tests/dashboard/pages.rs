//! The pages one after another: what a form is made of, a dry run, a search, schedules.

use crate::browser::Browser;
use crate::common::Place;
use crate::served::Served;
use crate::world::{purses, take, with_letters};
use serde_json::json;

#[tokio::test]
async fn a_dry_run_shows_before_and_after_and_changes_nothing() {
    let data = purses().await;
    let served = Served::with(Place::on(&data, &take("")), 1).await;
    let browser = Browser::on(&served.url).await;
    browser.open("/job-types").await;
    browser.sees("Take a little from every purse").await;
    browser.go("TAKE").await;
    browser.sees("exactly once").await;
    browser.fill("filter.counties", "Kent").await;
    browser.go("Dry run: change nothing, show a sample").await;
    browser.sees("It would reach 200 records.").await;
    browser.sees("4990").await;
    browser.sees("CHECK constraint failed").await;
    assert_eq!(data.number("SELECT count(*) FROM purses WHERE amount % 5000 = 4990").await, 0);
    browser.go("Run it now").await;
    browser.sees("Completed").await;
    browser.sees("199\nprocessed").await;
    assert_eq!(data.number("SELECT count(*) FROM purses WHERE amount = 4990").await, 199);
}

#[tokio::test]
async fn jobs_and_letters_are_found() {
    let (_data, served, id) = with_letters().await;
    let other = served.submit(json!({"jobType": "TAKE", "ids": [1]})).await;
    served.until(&other, "COMPLETED").await;
    let browser = Browser::on(&served.url).await;
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
    let data = purses().await;
    let schedule =
        "schedule = { cron = \"0 3 1 1 *\", timezone = \"Asia/Tokyo\", missed = \"skip\" }\n";
    let served = Served::start(Place::on(&data, &take(schedule))).await;
    let browser = Browser::on(&served.url).await;
    browser.open("/schedules").await;
    browser.sees("JST").await;
    browser.go("Pause").await;
    browser.sees("Paused").await;
    browser.go("Resume").await;
    browser.sees("JST").await;
}

#[tokio::test]
async fn a_failed_job_says_why_and_is_retried() {
    let data = purses().await;
    let served = Served::start(Place::on(&data, &take(""))).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    data.run("ALTER TABLE purses RENAME TO away").await;
    served.place.run(&format!("worker --job {id}")).await;
    served.until(&id, "FAILED").await;
    let browser = Browser::on(&served.url).await;
    browser.open("/").await;
    browser.sees("What went wrong").await;
    browser.sees("1 failed").await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("purses").await;
    data.run("ALTER TABLE away RENAME TO purses").await;
    browser.go("Retry what failed").await;
    browser.sees("Queued").await;
    served.place.run(&format!("worker --job {id}")).await.ok();
    browser.sees("Completed").await;
}
