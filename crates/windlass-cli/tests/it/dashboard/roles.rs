//! Signing in as three roles: each sees the buttons that it may press, and no others.

use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, text};
use crate::dashboard::fixture::{savings_accounts, take};
use serde_json::json;
use windlass_testkit::Browser;

async fn sign_in(browser: &Browser, token: &str) {
    browser.open("/").await;
    browser.is_at("/sign-in").await;
    browser.fill("token", token).await;
    browser.go("Sign in").await;
}

#[tokio::test]
async fn three_roles_see_three_sets_of_buttons() {
    let data = savings_accounts().await;
    let jobs = take(
        "throughput = { items_per_second = 1 }\nschedule = { cron = \"0 3 1 1 *\", missed = \"skip\" }\n",
    );
    let mut served = Served::with(CliSandbox::on(&data, &(jobs + &auth())), 1).await;
    served.token(&token("eve", "chief"));
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let job = format!("/jobs/{id}");
    for (name, role, pause, run, stop) in [
        ("vic", "all-viewer", false, false, false),
        ("oda", "clerk", true, true, false),
        ("eve", "chief", true, true, true),
    ] {
        let browser = Browser::start(&served.url).await;
        sign_in(&browser, &token(name, role)).await;
        browser.sees("Overview").await;
        browser.sees(name).await;
        assert_eq!(browser.offers("Emergency stop…").await, stop, "{role}");
        // A clerk has a job of their own to steer, and does not see that of others.
        let own = match role {
            "clerk" => {
                browser.open(&job).await;
                browser.sees("there is no job").await;
                served.token(&token(name, role));
                format!("/jobs/{}", served.submit(json!({"jobType": "TAKE"})).await)
            }
            _ => job.clone(),
        };
        browser.open(&own).await;
        browser.sees("TAKE").await;
        for button in ["Pause", "Cancel…", "Throughput…"] {
            assert_eq!(browser.offers(button).await, pause, "{role} {button}");
        }
        browser.open("/job-types/TAKE").await;
        assert_eq!(browser.offers("Run now").await, run, "{role}");
        assert_eq!(browser.offers("Stop this job type…").await, stop, "{role}");
        browser.open("/schedules").await;
        browser.sees("0 3 1 1 *").await;
        assert_eq!(browser.offers("Pause").await, stop, "{role}");
        // The page is kept true by events, which the cookie lets in.
        browser.sees("Live").await;
        assert_eq!(browser.run("return document.cookie").await, json!(""));
        browser.go("Sign out").await;
        browser.is_at("/sign-in").await;
        browser.open("/jobs").await;
        browser.is_at("/sign-in").await;
    }
}

#[tokio::test]
async fn who_is_signed_in_at_one_server_is_at_the_other() {
    let data = savings_accounts().await;
    let first = Served::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let listen = "serve -v --listen 127.0.0.1:0 --concurrency 1";
    let other = first.sandbox.spawn(listen);
    let mut url = None;
    crate::common::eventually("the other listens", async || {
        let said = other.stderr();
        url = said
            .split("listening on ")
            .nth(1)
            .and_then(|rest| rest.split(';').next())
            .map(str::to_owned);
        url.is_some()
    })
    .await;
    let browser = Browser::start(&first.url).await;
    sign_in(&browser, &token("eve", "chief")).await;
    browser.sees("Work is on.").await;
    // A cookie is of a host, whatever the port: as two servers behind one address would see it.
    browser.client.goto(&format!("{}/job-types/TAKE", url.unwrap())).await.unwrap();
    browser.go("Run now").await;
    browser.sees("Completed").await;
    browser.open("/").await;
    browser.sees("Ended last").await;
    browser.sees("TAKE").await;
}

#[tokio::test]
async fn one_comes_back_to_where_one_wanted_to_go() {
    let data = savings_accounts().await;
    let mut served = Served::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let id = text(
        &served
            .token(&token("eve", "chief"))
            .post("/api/v1/jobs", &json!({"jobType": "TAKE"}))
            .await
            .is(201)["id"],
    );
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("Sign in").await;
    browser.fill("token", "no.such.token").await;
    browser.go("Sign in").await;
    browser.sees("That token is not good here").await;
    browser.fill("token", &token("eve", "chief")).await;
    browser.go("Sign in").await;
    browser.is_at(&format!("/jobs/{id}")).await;
    browser.open("/sign-in?to=https://evil.example/").await;
    browser.fill("token", &token("eve", "chief")).await;
    browser.go("Sign in").await;
    browser.is_at("/").await;
    // A name is shown as it is, whatever it is.
    let name = "<img src=x onerror=\"window.pwned=true\">";
    browser.go("Sign out").await;
    browser.is_at("/sign-in").await;
    browser.fill("token", &token(name, "chief")).await;
    browser.go("Sign in").await;
    browser.sees(name).await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
}
