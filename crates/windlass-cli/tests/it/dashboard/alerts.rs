//! Alerts are shown on the overview until they are acknowledged, and on their own page afterwards.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::common::CliSandbox;
use crate::dashboard::wallets_fixture::{take, wallets};
use serde_json::json;
use windlass_testkit::Browser;

#[tokio::test]
async fn an_alert_is_acknowledged_on_the_overview() {
    let data = wallets().await;
    let config = take("") + "\n[alerts]\ndead_letters = 1\n" + &auth();
    let mut server = TestServer::with(CliSandbox::on(&data, &config), 2).await;
    let chief = token("eve", "chief");
    server.token(&chief);
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "COMPLETED").await;
    let browser = Browser::start(&server.url).await;
    let message = "TAKE has 2 dead letters, above the limit of 1";
    browser.open("/sign-in").await;
    browser.fill("token", &chief).await;
    browser.go("Sign in").await;
    browser.open("/").await;
    browser.sees(message).await;
    browser.go("Acknowledge").await;
    browser.is_at("/").await;
    browser.misses(message).await;
    browser.go("Alerts").await;
    browser.sees("No open alerts.").await;
    browser.go("Show all alerts").await;
    browser.sees(message).await;
    browser.sees("Acknowledged by eve").await;

    // The condition ends, and the page says so.
    server.sandbox.run("dead ignore --type TAKE").await.ok();
    browser.sees("Over").await;
    browser.sees("TAKE has 0 open dead letters, within the limit of 1").await;
}
