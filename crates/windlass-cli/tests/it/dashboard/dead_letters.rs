//! Dead letters: filtered, shown, redriven, ignored, exported; their values are escaped.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, text};
use crate::dashboard::wallets_fixture::{SCRIPT, server_with_dead_letters, take, wallets};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

#[tokio::test]
async fn a_dead_letter_is_redriven_and_disappears() {
    let (data, server, _) = server_with_dead_letters().await;
    let browser = Browser::start(&server.url).await;
    browser.shows("/dead-letters", "CHECK constraint failed").await;
    data.run("UPDATE wallets SET amount = 50 WHERE id = 8").await;
    let choose = "document.querySelector('[aria-label=\"Select dead letter 8\"]').click()";
    browser.run(choose).await;
    browser.go("Redrive selected").await;
    let eight = "return [...document.querySelectorAll('tbody a')].some(a => a.textContent === '8')";
    crate::common::eventually("letter 8 goes", async || browser.run(eight).await == json!(false))
        .await;
    assert_eq!(data.number("SELECT amount FROM wallets WHERE id = 8").await, 40);
    browser.shows("/dead-letters?status=", "reprocessed").await;
    // The history names the redrive job and the original job.
    browser.go("8").await;
    browser.sees("reprocessed by").await;
    let by = "document.querySelector('[aria-labelledby=history] dd a').click()";
    browser.run(by).await;
    browser.sees_all(&["Redrives dead letters of", "Completed"]).await;

    browser.open("/dead-letters").await;
    browser.go("7").await;
    browser.go("Ignore").await;
    browser.sees("ignored").await;
    assert!(!browser.offers("Redrive").await);
    browser.shows("/dead-letters", "No open dead letters.").await;
}

#[tokio::test]
async fn record_values_are_escaped() {
    let (_data, server, id) = server_with_dead_letters().await;
    let browser = Browser::start(&server.url).await;
    let letters = server.get(&format!("/api/v1/dead-letters?job={id}")).await.is(200);
    let seventh = letters.as_array().unwrap().iter().find(|letter| letter["key"] == 7).unwrap();
    browser.open(&format!("/dead-letters/{}", text(&seventh["id"]))).await;
    browser.sees(SCRIPT).await;
    browser.sees("mentioned in the error").await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
    // The same for values of a request.
    server.submit(json!({"jobType": "TAKE", "params": {"a": SCRIPT}, "ids": [1]})).await;
    browser.open("/jobs").await;
    browser.go("TAKE").await;
    browser.press("Request").await;
    browser.sees("window.pwned").await;
    browser
        .open(&format!("/dead-letters?error={}", "%3Cscript%3Ewindow.pwned=1%3C/script%3E"))
        .await;
    browser.sees("No matching dead letters.").await;
    assert_eq!(browser.run("return window.pwned === undefined").await, json!(true));
}

#[tokio::test]
async fn matching_dead_letters_are_exported() {
    let (_data, server, id) = server_with_dead_letters().await;
    let export = async |search: &str| {
        let response = server.get(&format!("/dead-letters/export?{search}")).await;
        assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
        response.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Json>>()
    };
    assert_eq!(export(&format!("job={id}")).await.len(), 2);
    assert_eq!(export("error=amount").await[0]["status"], "new");
    assert_eq!(export("error=nothing+of+the+kind").await.len(), 0);
}

#[tokio::test]
async fn errors_that_differ_only_in_values_are_one_group() {
    let data = wallets().await;
    data.run(
        "CREATE TRIGGER hole BEFORE UPDATE ON wallets WHEN NEW.id IN (3, 4, 5)
         BEGIN SELECT raise(ABORT, 'wallet ' || NEW.id || ' has a hole'); END",
    )
    .await;
    let server = TestServer::with(CliSandbox::on(&data, &take("")), 2).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let job: Json = server.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 5);
    let browser = Browser::start(&server.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    let group = "return [...document.querySelectorAll('[aria-labelledby=errors] tbody tr')] \
        .map(row => [row.querySelector('a').innerText, row.cells[1].innerText])[0]";
    let group = browser.run(group).await;
    assert!(text(&group[0]).starts_with("wallet … has a hole") && group[1] == "3", "{group}");
    browser.go(&text(&group[0])).await;
    browser.sees("Errors like").await;
    let rows = "return document.querySelectorAll('[name=ids]').length";
    assert_eq!(browser.run(rows).await, json!(3), "exactly the dead letters of the group");
    // A bulk action affects only the group.
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
    browser.press("Ignore all matching…").await;
    browser.go("Ignore all").await;
    browser.sees("CHECK constraint failed").await;
    browser.misses("has a hole").await;
    assert_eq!(browser.run(rows).await, json!(2));
}

#[tokio::test]
async fn a_refused_action_is_explained_beside_its_form_and_keeps_the_selection() {
    let (data, server, _) = server_with_dead_letters().await;
    let browser = Browser::start(&server.url).await;
    let reason = "return [...document.querySelectorAll('main .problem[role=alert]')] \
        .map(problem => problem.closest('form, main').querySelector('button').innerText \
        + ': ' + problem.innerText)";
    for button in ["Redrive selected", "Ignore selected"] {
        browser.open("/dead-letters?error=amount&status=new").await;
        browser.go(button).await;
        let shown = browser.run(reason).await;
        assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
        assert!(text(&shown[0]).starts_with("Redrive selected: "), "{shown}");
        assert!(text(&shown[0]).ends_with("select at least one dead letter"), "{shown}");
        // The filter is still there.
        let error = "return document.querySelector('[name=error]').value";
        assert_eq!(browser.run(error).await, json!("amount"));
        assert_eq!(browser.accessibility_violations().await, [""; 0]);
    }
    // The source cannot be read any more.
    data.run("ALTER TABLE wallets RENAME TO purses").await;
    browser.open("/dead-letters").await;
    let select = "document.querySelector('[aria-label=\"Select dead letter 8\"]').click()";
    browser.run(select).await;
    browser.go("Redrive selected").await;
    let shown = browser.run(reason).await;
    assert!(text(&shown[0]).starts_with("Redrive selected: "), "{shown}");
    assert!(text(&shown[0]).contains("see the server log"), "{shown}");
    let selected = "return [...document.querySelectorAll('[name=ids]:checked')]         .map(box => box.getAttribute('aria-label'))";
    assert_eq!(browser.run(selected).await, json!(["Select dead letter 8"]));
    browser.open("/dead-letters?jobType=TAKE").await;
    browser.press("Redrive all matching…").await;
    browser.go("Redrive all").await;
    let shown = browser.run(reason).await;
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown}");
    assert!(text(&shown[0]).starts_with("Redrive all: "), "{shown}");
    browser.open("/dead-letters").await;
    browser.go("8").await;
    browser.go("Redrive").await;
    browser.sees_all(&["Dead letter 8", "see the server log"]).await;
    // Once the cause is removed, the same form works.
    data.run("ALTER TABLE purses RENAME TO wallets; UPDATE wallets SET amount = 50").await;
    browser.go("Redrive").await;
    browser.sees("reprocessed").await;
}
