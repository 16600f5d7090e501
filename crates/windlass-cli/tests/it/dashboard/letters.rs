//! Dead letters: found, looked at, redriven, ignored, exported. What a record says is shown, not run.

use crate::api::served::Served;
use crate::common::{CliSandbox, text};
use crate::dashboard::fixture::{SCRIPT, savings_accounts, take, with_letters};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

#[tokio::test]
async fn a_letter_is_redriven_and_goes() {
    let (data, served, _) = with_letters().await;
    let browser = Browser::start(&served.url).await;
    browser.open("/dead-letters").await;
    browser.sees("CHECK constraint failed").await;
    data.run("UPDATE savings SET amount = 50 WHERE id = 8").await;
    let choose = "document.querySelector('[aria-label=\"Choose letter 8\"]').click()";
    browser.run(choose).await;
    browser.go("Redrive the chosen").await;
    let eight = "return [...document.querySelectorAll('tbody a')].some(a => a.textContent === '8')";
    crate::common::eventually("letter 8 goes", async || browser.run(eight).await == json!(false))
        .await;
    assert_eq!(data.number("SELECT amount FROM savings WHERE id = 8").await, 40);
    browser.open("/dead-letters?status=").await;
    browser.sees("reprocessed").await;
    // What happened to it after: which job did it, and of which job it was.
    browser.go("8").await;
    browser.sees("reprocessed by").await;
    let by = "document.querySelector('[aria-labelledby=after] dd a').click()";
    browser.run(by).await;
    browser.sees("Redrives letters of").await;
    browser.sees("Completed").await;

    browser.open("/dead-letters").await;
    browser.go("7").await;
    browser.go("Ignore").await;
    browser.sees("ignored").await;
    assert!(!browser.offers("Redrive").await);
    browser.open("/dead-letters").await;
    browser.sees("No dead letter waits for you here.").await;
}

#[tokio::test]
async fn what_a_record_says_is_shown_and_not_run() {
    let (_data, served, id) = with_letters().await;
    let browser = Browser::start(&served.url).await;
    let letters = served.get(&format!("/api/v1/dead-letters?job={id}")).await.is(200);
    let seventh = letters.as_array().unwrap().iter().find(|letter| letter["key"] == 7).unwrap();
    browser.open(&format!("/dead-letters/{}", text(&seventh["id"]))).await;
    browser.sees(SCRIPT).await;
    browser.sees("named by the error").await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
    // The same by way of what a caller asks for.
    served.submit(json!({"jobType": "TAKE", "params": {"a": SCRIPT}, "ids": [1]})).await;
    browser.open("/jobs").await;
    browser.go("TAKE").await;
    browser.press("The request").await;
    browser.sees("window.pwned").await;
    browser
        .open(&format!("/dead-letters?error={}", "%3Cscript%3Ewindow.pwned=1%3C/script%3E"))
        .await;
    browser.sees("No dead letter waits for you here.").await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
}

#[tokio::test]
async fn what_a_search_finds_is_exported() {
    let (_data, served, id) = with_letters().await;
    let export = async |search: &str| {
        let answer = served.get(&format!("/dead-letters/export?{search}")).await;
        assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
        answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Json>>()
    };
    assert_eq!(export(&format!("job={id}")).await.len(), 2);
    assert_eq!(export("error=amount").await[0]["status"], "new");
    assert_eq!(export("error=nothing+of+the+kind").await.len(), 0);
}

#[tokio::test]
async fn errors_that_differ_in_values_alone_are_one_group() {
    let data = savings_accounts().await;
    data.run(
        "CREATE TRIGGER frozen BEFORE UPDATE ON savings WHEN NEW.id IN (3, 4, 5)
         BEGIN SELECT raise(ABORT, 'account ' || NEW.id || ' is frozen'); END",
    )
    .await;
    let served = Served::with(CliSandbox::on(&data, &take("")), 2).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let job: Json = served.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 5);
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    let group = "return [...document.querySelectorAll('[aria-labelledby=errors] tbody tr')] \
        .map(row => [row.querySelector('a').innerText, row.cells[1].innerText])[0]";
    let group = browser.run(group).await;
    assert!(text(&group[0]).starts_with("account … is frozen") && group[1] == "3", "{group}");
    browser.go(&text(&group[0])).await;
    browser.sees("With errors like").await;
    let rows = "return document.querySelectorAll('[name=ids]').length";
    assert_eq!(browser.run(rows).await, json!(3), "exactly the letters of the group");
    // What is done to all that the search finds is done to the group alone.
    browser
        .open(
            &browser
                .run("return location.search")
                .await
                .as_str()
                .unwrap()
                .replace("status=", "status=new")
                .replacen('?', "/dead-letters?", 1),
        )
        .await;
    browser.press("Ignore all that this search finds…").await;
    browser.go("Ignore them all").await;
    browser.sees("CHECK constraint failed").await;
    browser.misses("has a hole").await;
    assert_eq!(browser.run(rows).await, json!(2));
}
