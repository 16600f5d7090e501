//! The report of a job, opened as a file: it needs no server, runs no script, and is accessible on every
//! screen.

use crate::common::CliSandbox;
use crate::dashboard::wallets_fixture::{SCRIPT, server_with_dead_letters, take, wallets};
use serde_json::json;
use std::path::PathBuf;
use windlass_testkit::{Browser, Screen};

/// Sums the wallets by county. The first name of one county is a script.
const SUMS: &str = r#"
[jobs.SUMS]
description = "What the wallets of each county hold"
source.connection = "app"
source.table = "wallets"
step.map = "SELECT county, min(name) AS first_name, count(*) AS wallets, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY county"
reduce = "SELECT county, min(first_name) AS first_name, sum(wallets) AS wallets, sum(total) AS total FROM parts GROUP BY county ORDER BY county"
report = { to = "file:reports/sums.csv" }
params = { month = { type = "text" } }
chunk.items = 40
"#;

#[tokio::test]
async fn a_report_fits_the_screen_and_runs_no_script() {
    let data = wallets().await;
    let schedule =
        "schedule = { cron = \"0 3 * * *\", timezone = \"Asia/Tokyo\", missed = \"skip\" }\n";
    let sandbox = CliSandbox::on(&data, &(take(schedule) + SUMS));
    sandbox.run("run SUMS --param month=2026-10").await.ok();
    let taken = sandbox.json("run TAKE --filter counties=Kent,Essex --allow-dead-letters").await;
    sandbox
        .run(&format!("job {} --html reports/take.html", taken["id"].as_str().unwrap()))
        .await
        .ok();
    let failed = sandbox.submit("TAKE").await;
    data.run("ALTER TABLE wallets RENAME TO away").await;
    sandbox.run(&format!("worker --job {failed}")).await;
    sandbox.run(&format!("job {failed} --html reports/failed.html")).await.ok();

    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard");
    std::fs::create_dir_all(&folder).unwrap();
    let base = format!("file://{}", sandbox.path("reports").display());
    for (viewport, name) in [
        (Screen::Desktop, "desk-light"),
        (Screen::DesktopDark, "desk-dark"),
        (Screen::Phone, "phone-light"),
        (Screen::PhoneDark, "phone-dark"),
    ] {
        let browser = Browser::with_screen(&base, viewport).await;
        for (file, sentence) in [
            ("sums.csv.html", "What the wallets of each county hold"),
            ("take.html", "2 dead letters"),
            ("failed.html", "The job ended before any items were planned."),
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
async fn a_report_is_downloaded_from_the_job_page() {
    let (_data, server, id) = server_with_dead_letters().await;
    let browser = Browser::start(&server.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    assert!(browser.offers("Download report").await);
    let link = "return document.querySelector('a[download$=\".html\"]').getAttribute('href')";
    let path = browser.run(link).await;
    let report = server.get(path.as_str().unwrap()).await;
    assert_eq!(
        (report.status, report.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
}
