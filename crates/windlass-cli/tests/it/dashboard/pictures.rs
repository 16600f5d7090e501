//! Pictures of every page, light and dark, on a desk and on a phone, empty and full; they are left in
//! `target/dashboard` for people to look at. Nothing may reach beyond the width of a phone,
//! and axe finds nothing that would keep somebody out.

use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, text};
use crate::dashboard::fixture::{savings_accounts, take};
use serde_json::json;
use std::path::PathBuf;
use windlass_testkit::{Browser, Screen};

const PAGES: [(&str, &str); 7] = [
    ("overview", "/"),
    ("jobs", "/jobs"),
    ("letters", "/dead-letters?status="),
    ("job-types", "/job-types"),
    ("job-type", "/job-types/TAKE"),
    ("schedules", "/schedules"),
    ("workers", "/workers"),
];

async fn look_at(browser: &Browser, name: &str, path: &str) {
    browser.open(path).await;
    look_here(browser, name).await;
}

/// The same of the page that is open.
async fn look_here(browser: &Browser, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard");
    std::fs::create_dir_all(&folder).unwrap();
    browser.screenshot(&folder.join(format!("{name}.png"))).await;
    let wide = "return document.documentElement.scrollWidth > window.innerWidth";
    assert_eq!(browser.run(wide).await, json!(false), "{name} is wider than the screen");
    assert_eq!(browser.accessibility_violations().await, [""; 0], "{name}");
}

#[tokio::test]
async fn every_page_fits_every_screen() {
    let data = savings_accounts().await;
    let schedule = "schedule = { cron = \"0 3 * * *\", timezone = \"Asia/Tokyo\", deadline = \"3h\", \
                    missed = \"skip\" }\n";
    let slow = take("throughput = { items_per_second = 5 }\n").replace("jobs.TAKE", "jobs.STROLL");
    let after = take("").replace("jobs.TAKE", "jobs.SUM_UP");
    let rule = "[[dependencies]]\njob = \"SUM_UP\"\nafter = [\"TAKE\"]\n";
    let jobs = take(schedule) + &slow + &after + rule;
    let served = Served::with(CliSandbox::on(&data, &jobs), 2).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    served.until(&id, "COMPLETED").await;
    served.submit(json!({"jobType": "STROLL"})).await;
    let paused = served.submit(json!({"jobType": "TAKE", "priority": 1})).await;
    served.post(&format!("/api/v1/jobs/{paused}/pause"), &json!({})).await;
    for (look, name) in [
        (Screen::Desktop, "desk-light"),
        (Screen::DesktopDark, "desk-dark"),
        (Screen::Phone, "phone-light"),
        (Screen::PhoneDark, "phone-dark"),
    ] {
        let browser = Browser::with_screen(&served.url, look).await;
        let dark = "return matchMedia('(prefers-color-scheme: dark)').matches";
        assert_eq!(browser.run(dark).await, json!(name.ends_with("dark")), "{name}");
        for (page, path) in PAGES {
            look_at(&browser, &format!("{page}-{name}"), path).await;
        }
        look_at(&browser, &format!("job-{name}"), &format!("/jobs/{id}?chunk=0")).await;
    }
}

#[tokio::test]
async fn pages_that_one_sees_seldom_fit_and_keep_nobody_out() {
    let data = savings_accounts().await;
    let mut served = Served::with(CliSandbox::on(&data, &(take("") + &auth())), 2).await;
    let chief = token("eve", "chief");
    served.token(&chief);
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    served.until(&id, "COMPLETED").await;
    let letters = served.get("/api/v1/dead-letters").await.is(200);
    let letter = format!("/dead-letters/{}", text(&letters[0]["id"]));
    for (look, name) in [(Screen::Desktop, "desk-light"), (Screen::PhoneDark, "phone-dark")] {
        let browser = Browser::with_screen(&served.url, look).await;
        look_at(&browser, &format!("sign-in-{name}"), "/sign-in").await;
        browser.fill("token", "wrong").await;
        browser.go("Sign in").await;
        look_here(&browser, &format!("sign-in-wrong-{name}")).await;
        browser.fill("token", &chief).await;
        browser.go("Sign in").await;
        look_at(&browser, &format!("letter-{name}"), &letter).await;
        look_at(&browser, &format!("audit-{name}"), &format!("/jobs/{id}/audit")).await;
        look_at(&browser, &format!("no-job-{name}"), &format!("/jobs/{}", uuid::Uuid::nil())).await;
        look_at(&browser, &format!("nowhere-{name}"), "/nowhere").await;
        browser.sees("there is nothing at /nowhere").await;
        browser.open("/job-types/TAKE").await;
        browser.go("Dry run: change nothing, show a sample").await;
        look_here(&browser, &format!("dry-run-{name}")).await;
        served.post("/api/v1/stop", &json!({})).await.is(200);
        look_at(&browser, &format!("stopped-{name}"), "/").await;
        browser.sees("Everything is stopped.").await;
        served.post("/api/v1/start", &json!({})).await.is(200);
        browser.go("Sign out").await;
        // Whoever may only look and yet sends a form is told so.
        browser.fill("token", &token("vic", "viewer")).await;
        browser.go("Sign in").await;
        let post = "const form = document.createElement('form'); form.method = 'post'; \
            form.action = '/stop'; document.body.append(form); form.submit()";
        browser.run(post).await;
        browser.sees("To the overview").await;
        look_here(&browser, &format!("forbidden-{name}")).await;
    }
}

#[tokio::test]
async fn a_server_on_which_nothing_has_happened_has_nothing_to_hide() {
    let data = savings_accounts().await;
    let served = Served::start(CliSandbox::on(&data, &take(""))).await;
    let browser = Browser::with_screen(&served.url, Screen::Phone).await;
    for (page, path) in PAGES {
        look_at(&browser, &format!("{page}-empty"), path).await;
    }
    browser.open("/workers").await;
    browser.sees("No process works.").await;
}
