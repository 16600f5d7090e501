//! Keyboard use, on pages that update at the same time.

use crate::common::eventually;
use crate::dashboard::wallets_fixture::{server_with_dead_letters, throttled_server};
use serde_json::json;
use windlass_testkit::Browser;
use windlass_testkit::Key;

#[tokio::test]
async fn a_job_is_paused_and_resumed_with_the_keyboard() {
    let (_data, server) = throttled_server().await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&server.url).await;
    browser.shows("/", "Running").await;
    browser.key(Key::Tab).await;
    assert_eq!(browser.focused().await, "Skip to content");
    browser.key(Key::Enter).await;
    browser.tab_to("TAKE").await;
    browser.enter().await;
    browser.is_at(&format!("/jobs/{id}")).await;
    browser.tab_to("Pause").await;
    // The page updates, and the focus stays.
    let done = "return Number(document.querySelector('main progress').value)";
    let before = browser.run(done).await.as_f64().unwrap();
    eventually("the bar moves", async || browser.run(done).await.as_f64().unwrap() > before).await;
    assert_eq!(browser.focused().await, "Pause");
    browser.enter().await;
    browser.sees("Paused").await;
    browser.tab_to("Resume").await;
    browser.enter().await;
    browser.sees("Running").await;
    browser.tab_to("Chunk list").await;
    browser.key(Key::Enter).await;
    browser.tab_to("3").await;
    browser.enter().await;
    browser.sees_all(&["Chunk 3", "id from "]).await;
}

#[tokio::test]
async fn a_dead_letter_is_selected_and_redriven() {
    let (data, server, _) = server_with_dead_letters().await;
    data.run("UPDATE wallets SET amount = 50 WHERE id = 8").await;
    let browser = Browser::start(&server.url).await;
    browser.open("/dead-letters").await;
    browser.tab_to("Select dead letter 8").await;
    browser.key(' ').await;
    browser.tab_to("Redrive selected").await;
    browser.enter().await;
    let left = "return document.querySelectorAll('[name=ids]').length";
    eventually("letter 8 goes", async || browser.run(left).await == json!(1)).await;
    assert_eq!(data.number("SELECT amount FROM wallets WHERE id = 8").await, 40);
}

#[tokio::test]
async fn the_focus_stays_when_an_earlier_row_is_removed() {
    let (_data, server, id) = server_with_dead_letters().await;
    let letters = server.get(&format!("/api/v1/dead-letters?job={id}")).await.is(200);
    let [first, second] = [0, 1].map(|sandbox| &letters[sandbox]);
    let browser = Browser::start(&server.url).await;
    browser.open("/dead-letters").await;
    let name = format!("Select dead letter {}", second["key"]);
    browser.tab_to(&name).await;
    browser.key(' ').await;
    server.post("/api/v1/dead-letters/ignore", &json!({"ids": [first["id"]]})).await.is(200);
    let left = "return document.querySelectorAll('[name=ids]').length";
    eventually("the first letter goes", async || browser.run(left).await == json!(1)).await;
    assert_eq!(browser.focused().await, name);
    let chosen = "return document.querySelector('[name=ids]').checked";
    assert_eq!(browser.run(chosen).await, json!(true));
}
