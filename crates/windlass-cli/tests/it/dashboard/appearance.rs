//! Screenshots of every page, light and dark, on a desktop and on a phone, with and without data. They are
//! saved in `target/dashboard` for review. No page is wider than its screen, and axe finds no serious
//! accessibility violations.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::common::{CliSandbox, text};
use crate::dashboard::wallets_fixture::{take, wallets};
use serde_json::json;
use std::path::PathBuf;
use windlass_testkit::{Browser, Screen};

const PAGES: [(&str, &str); 8] = [
    ("overview", "/"),
    ("jobs", "/jobs"),
    ("letters", "/dead-letters?status="),
    ("alerts", "/alerts?show=all"),
    ("job-types", "/job-types"),
    ("job-type", "/job-types/TAKE"),
    ("schedules", "/schedules"),
    ("workers", "/workers"),
];

async fn check_page(browser: &Browser, name: &str, path: &str) {
    browser.open(path).await;
    check_current_page(browser, name).await;
}

/// Checks the current page.
async fn check_current_page(browser: &Browser, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard");
    std::fs::create_dir_all(&folder).unwrap();
    browser.screenshot(&folder.join(format!("{name}.png"))).await;
    let wide = "return document.documentElement.scrollWidth > window.innerWidth";
    assert_eq!(browser.run(wide).await, json!(false), "{name} is wider than the screen");
    assert_eq!(browser.accessibility_violations().await, [""; 0], "{name}");
}

#[tokio::test]
async fn every_page_fits_the_screen_and_is_accessible() {
    let data = wallets().await;
    let schedule = "schedule = { cron = \"0 3 * * *\", timezone = \"Asia/Tokyo\", deadline = \"3h\", \
                    missed = \"skip\" }\n";
    let slow = take("throughput = { items_per_second = 5 }\n").replace("jobs.TAKE", "jobs.STROLL");
    let after = take("").replace("jobs.TAKE", "jobs.SUM_UP");
    let rule = "[[dependencies]]\njob = \"SUM_UP\"\nafter = [\"TAKE\"]\n";
    let jobs = take(schedule) + &slow + &after + rule;
    let server = TestServer::with(CliSandbox::on(&data, &jobs), 2).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "COMPLETED").await;
    server.submit(json!({"jobType": "STROLL"})).await;
    let paused = server.submit(json!({"jobType": "TAKE", "priority": 1})).await;
    server.post(&format!("/api/v1/jobs/{paused}/pause"), &json!({})).await;
    for (viewport, name) in [
        (Screen::Desktop, "desk-light"),
        (Screen::DesktopDark, "desk-dark"),
        (Screen::Phone, "phone-light"),
        (Screen::PhoneDark, "phone-dark"),
    ] {
        let browser = Browser::with_screen(&server.url, viewport).await;
        let dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
        assert_eq!(browser.run(dark).await, json!(name.ends_with("dark")), "{name}");
        for (page, path) in PAGES {
            check_page(&browser, &format!("{page}-{name}"), path).await;
        }
        check_page(&browser, &format!("job-{name}"), &format!("/jobs/{id}?chunk=0")).await;
    }
}

#[tokio::test]
async fn rare_pages_fit_the_screen_and_are_accessible() {
    let data = wallets().await;
    let mut server = TestServer::with(CliSandbox::on(&data, &(take("") + &auth())), 2).await;
    let chief = token("eve", "chief");
    server.token(&chief);
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "COMPLETED").await;
    let letters = server.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    for (viewport, name) in [(Screen::Desktop, "desk-light"), (Screen::PhoneDark, "phone-dark")] {
        let browser = Browser::with_screen(&server.url, viewport).await;
        check_page(&browser, &format!("sign-in-{name}"), "/sign-in").await;
        browser.fill("token", "wrong").await;
        browser.go("Sign in").await;
        check_current_page(&browser, &format!("sign-in-wrong-{name}")).await;
        browser.fill("token", &chief).await;
        browser.go("Sign in").await;
        check_page(&browser, &format!("letter-{name}"), &letter).await;
        check_page(&browser, &format!("audit-{name}"), &format!("/jobs/{id}/audit")).await;
        check_page(&browser, &format!("no-job-{name}"), &format!("/jobs/{}", uuid::Uuid::nil()))
            .await;
        check_page(&browser, &format!("nowhere-{name}"), "/nowhere").await;
        browser.sees("no such path: /nowhere").await;
        browser.open("/job-types/TAKE").await;
        browser.go("Dry run").await;
        check_current_page(&browser, &format!("dry-run-{name}")).await;
        server.post("/api/v1/stop", &json!({})).await.is(200);
        check_page(&browser, &format!("stopped-{name}"), "/").await;
        browser.sees("Processing is stopped.").await;
        server.post("/api/v1/start", &json!({})).await.is(200);
        browser.go("Sign out").await;
        // A viewer who submits a form gets an error page.
        browser.fill("token", &token("vic", "viewer")).await;
        browser.go("Sign in").await;
        let post = "const form = document.createElement('form'); form.method = 'post'; \
            form.action = '/stop'; document.body.append(form); form.submit()";
        browser.run(post).await;
        browser.sees("Go to the overview").await;
        check_current_page(&browser, &format!("forbidden-{name}")).await;
    }
}

#[tokio::test]
async fn empty_pages_fit_the_screen_and_are_accessible() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let browser = Browser::with_screen(&server.url, Screen::Phone).await;
    for (page, path) in PAGES {
        check_page(&browser, &format!("{page}-empty"), path).await;
    }
    browser.shows("/workers", "No workers.").await;
}
