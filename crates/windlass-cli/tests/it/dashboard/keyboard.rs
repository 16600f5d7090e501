//! Everything by the keyboard alone, on pages that change meanwhile.

use crate::common::eventually;
use crate::dashboard::fixture::{slow, with_letters};
use windlass_testkit::{Browser, Key};

use serde_json::json;

#[tokio::test]
async fn a_job_is_found_looked_into_paused_and_resumed() {
    let (_data, served) = slow().await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&served.url).await;
    browser.open("/").await;
    browser.sees("Running").await;
    browser.key(Key::Tab).await;
    assert_eq!(browser.focused().await, "To the content");
    browser.key(Key::Enter).await;
    browser.tab_to("TAKE").await;
    browser.enter().await;
    browser.is_at(&format!("/jobs/{id}")).await;
    browser.tab_to("Pause").await;
    // The page moves under the finger, which stays where it is.
    let done = "return Number(document.querySelector('main progress').value)";
    let before = browser.run(done).await.as_f64().unwrap();
    eventually("the bar moves", async || browser.run(done).await.as_f64().unwrap() > before).await;
    assert_eq!(browser.focused().await, "Pause");
    browser.enter().await;
    browser.sees("Paused").await;
    browser.tab_to("Resume").await;
    browser.enter().await;
    browser.sees("Running").await;
    browser.tab_to("Chunks one by one").await;
    browser.key(Key::Enter).await;
    browser.tab_to("3").await;
    browser.enter().await;
    browser.sees("Chunk 3").await;
    browser.sees("id from ").await;
}

#[tokio::test]
async fn a_letter_is_chosen_and_redriven() {
    let (data, served, _) = with_letters().await;
    data.run("UPDATE savings SET amount = 50 WHERE id = 8").await;
    let browser = Browser::start(&served.url).await;
    browser.open("/dead-letters").await;
    browser.tab_to("Choose letter 8").await;
    browser.key(' ').await;
    browser.tab_to("Redrive the chosen").await;
    browser.enter().await;
    let left = "return document.querySelectorAll('[name=ids]').length";
    eventually("letter 8 goes", async || browser.run(left).await == json!(1)).await;
    assert_eq!(data.number("SELECT amount FROM savings WHERE id = 8").await, 40);
}

#[tokio::test]
async fn the_focus_stays_when_a_row_before_it_goes() {
    let (_data, served, id) = with_letters().await;
    let letters = served.get(&format!("/api/v1/dead-letters?job={id}")).await.is(200);
    let [first, second] = [0, 1].map(|index| &letters[index]);
    let browser = Browser::start(&served.url).await;
    browser.open("/dead-letters").await;
    let name = format!("Choose letter {}", second["key"]);
    browser.tab_to(&name).await;
    browser.key(' ').await;
    served.post("/api/v1/dead-letters/ignore", &json!({"ids": [first["id"]]})).await.is(200);
    let left = "return document.querySelectorAll('[name=ids]').length";
    eventually("the first letter goes", async || browser.run(left).await == json!(1)).await;
    assert_eq!(browser.focused().await, name);
    let chosen = "return document.querySelector('[name=ids]').checked";
    assert_eq!(browser.run(chosen).await, json!(true));
}
