//! Signing in as three roles: each sees the buttons that it may press, and no others.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::common::{CliSandbox, server, text};
use crate::dashboard::wallets_fixture::{sign_in, take, wallets};
use serde_json::json;
use windlass_testkit::Browser;

#[tokio::test]
async fn three_roles_see_three_sets_of_buttons() {
    let data = wallets().await;
    let jobs = take(
        "throughput = { items_per_second = 1 }\nschedule = { cron = \"0 3 1 1 *\", missed = \"skip\" }\n",
    );
    let mut server = TestServer::with(CliSandbox::on(&data, &(jobs + &auth())), 1).await;
    server.token(&token("eve", "chief"));
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let job = format!("/jobs/{id}");
    for (name, role, pause, run, stop) in [
        ("vic", "all-viewer", false, false, false),
        ("oda", "clerk", true, true, false),
        ("eve", "chief", true, true, true),
    ] {
        let browser = Browser::start(&server.url).await;
        sign_in(&browser, &token(name, role)).await;
        browser.sees_all(&["Overview", name]).await;
        assert_eq!(browser.offers("Emergency stop…").await, stop, "{role}");
        // A clerk has a job of their own to steer, and does not see that of others.
        let own = match role {
            "clerk" => {
                browser.shows(&job, "there is no job").await;
                server.token(&token(name, role));
                format!("/jobs/{}", server.submit(json!({"jobType": "TAKE"})).await)
            }
            _ => job.clone(),
        };
        browser.shows(&own, "TAKE").await;
        for button in ["Pause", "Cancel…", "Throughput…"] {
            assert_eq!(browser.offers(button).await, pause, "{role} {button}");
        }
        browser.open("/job-types/TAKE").await;
        assert_eq!(browser.offers("Run now").await, run, "{role}");
        assert_eq!(browser.offers("Stop this job type…").await, stop, "{role}");
        browser.shows("/schedules", "0 3 1 1 *").await;
        assert_eq!(browser.offers("Pause").await, stop, "{role}");
        // The cookie also authorizes the event stream.
        browser.sees("Live").await;
        assert_eq!(browser.run("return document.cookie").await, json!(""));
        browser.go("Sign out").await;
        browser.is_at("/sign-in").await;
        browser.open("/jobs").await;
        browser.is_at("/sign-in").await;
    }
}

#[tokio::test]
async fn a_session_is_valid_on_every_server() {
    let data = wallets().await;
    let first = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let (_other, url) = server::start(&first.sandbox, 1).await;
    let browser = Browser::start(&first.url).await;
    sign_in(&browser, &token("eve", "chief")).await;
    browser.sees("Processing is enabled.").await;
    // A cookie belongs to a host, not to a port: this is as with two servers behind a load balancer.
    browser.client.goto(&format!("{url}/job-types/TAKE")).await.unwrap();
    browser.go("Run now").await;
    browser.sees("Completed").await;
    browser.open("/").await;
    browser.sees_all(&["Recently finished jobs", "TAKE"]).await;
}

#[tokio::test]
async fn sign_in_returns_to_the_requested_page() {
    let data = wallets().await;
    let mut server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    let id = text(
        &server
            .token(&token("eve", "chief"))
            .post("/api/v1/jobs", &json!({"jobType": "TAKE"}))
            .await
            .is(201)["id"],
    );
    let browser = Browser::start(&server.url).await;
    browser.shows(&format!("/jobs/{id}"), "Sign in").await;
    browser.fill("token", "no.such.token").await;
    browser.go("Sign in").await;
    browser.sees("The token is not valid.").await;
    browser.fill("token", &token("eve", "chief")).await;
    browser.go("Sign in").await;
    browser.is_at(&format!("/jobs/{id}")).await;
    browser.open("/sign-in?to=https://evil.example/").await;
    browser.fill("token", &token("eve", "chief")).await;
    browser.go("Sign in").await;
    browser.is_at("/").await;
    // The name is escaped.
    let name = "<img src=x onerror=\"window.pwned=true\">";
    browser.go("Sign out").await;
    browser.is_at("/sign-in").await;
    browser.fill("token", &token(name, "chief")).await;
    browser.go("Sign in").await;
    browser.sees(name).await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
}
