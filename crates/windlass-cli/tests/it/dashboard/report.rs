//! The report of a job, opened as the file that it is: it needs no server, runs nothing, and can be
//! read by everybody, on any screen.

use crate::common::CliSandbox;
use crate::dashboard::fixture::{SCRIPT, savings_accounts, take, with_letters};
use serde_json::json;
use std::path::PathBuf;
use windlass_testkit::{Browser, Screen};

/// Sums the savings by county and names the first account of each. One name is a script.
const SUMS: &str = r#"
[jobs.SUMS]
description = "Savings by county"
source.connection = "app"
source.table = "savings"
step.map = "SELECT county, min(name) AS first_name, count(*) AS accounts, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY county"
reduce = "SELECT county, min(first_name) AS first_name, sum(accounts) AS accounts, sum(total) AS total FROM parts GROUP BY county ORDER BY county"
report = { to = "file:reports/sums.csv" }
chunk.items = 40
"#;

#[tokio::test]
async fn it_fits_every_screen_and_runs_nothing() {
    let data = savings_accounts().await;
    let schedule =
        "schedule = { cron = \"0 3 * * *\", timezone = \"Asia/Tokyo\", missed = \"skip\" }\n";
    let sandbox = CliSandbox::on(&data, &(take(schedule) + SUMS));
    sandbox.run("run SUMS --param month=2026-10").await.ok();
    let taken = sandbox.json("run TAKE --filter counties=Kent,Essex").await;
    sandbox
        .run(&format!("job {} --html reports/take.html", taken["id"].as_str().unwrap()))
        .await
        .ok();
    let failed = sandbox.submit("TAKE").await;
    data.run("ALTER TABLE savings RENAME TO away").await;
    sandbox.run(&format!("worker --job {failed}")).await;
    sandbox.run(&format!("job {failed} --html reports/failed.html")).await.ok();

    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard");
    std::fs::create_dir_all(&folder).unwrap();
    let base = format!("file://{}", sandbox.path("reports").display());
    for (look, name) in [
        (Screen::Desktop, "desk-light"),
        (Screen::DesktopDark, "desk-dark"),
        (Screen::Phone, "phone-light"),
        (Screen::PhoneDark, "phone-dark"),
    ] {
        let browser = Browser::with_screen(&base, look).await;
        for (file, sentence) in [
            ("sums.csv.html", "Savings by county"),
            ("take.html", "2 are dead letters"),
            ("failed.html", "It ended before any item was planned."),
        ] {
            let about = format!("{file} {name}");
            browser.open(&format!("/{file}")).await;
            browser.sees(sentence).await;
            let picture = file.replace(".csv", "").replace(".html", "");
            browser.screenshot(&folder.join(format!("report-{picture}-{name}.png"))).await;
            let wide = "return document.documentElement.scrollWidth > window.innerWidth";
            assert_eq!(browser.run(wide).await, json!(false), "{about} is wider than the screen");
            assert_eq!(browser.accessibility_violations().await, [""; 0], "{about}");
            let fetched = "return performance.getEntriesByType('resource').length";
            assert_eq!(browser.run(fetched).await, json!(0), "{about} fetches something");
        }
        browser.open("/sums.csv.html").await;
        browser.sees(SCRIPT).await;
        assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
    }
}

#[tokio::test]
async fn it_is_downloaded_from_the_page_of_a_job_that_has_ended() {
    let (_data, served, id) = with_letters().await;
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    assert!(browser.offers("Download the report").await);
    let link = "return document.querySelector('a[download$=\".html\"]').getAttribute('href')";
    let path = browser.run(link).await;
    let report = served.get(path.as_str().unwrap()).await;
    assert_eq!(
        (report.status, report.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
}
