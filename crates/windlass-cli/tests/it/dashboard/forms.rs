//! Forms: refused input stays in the form with the reason beside its field, and every kind of job type can be run.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, eventually, text};
use crate::dashboard::wallets_fixture::{take, wallets};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// A job type on the items of a request, whose step takes params.
const CALL: &str = r#"
[jobs.CALL]
source = { connection = "app", items = true, key = ["id"] }
step.command = ["python3", "call.py"]
"#;

/// Emits the record and the params of each item.
const SCRIPT: &str = r#"import json, sys
for line in sys.stdin:
    batch = json.loads(line)
    made = lambda item: {"key": item["key"], "emit": [{"id": item["record"]["id"], "params": batch["params"]}]}
    print(json.dumps({"results": [made(item) for item in batch["items"]]}), flush=True)
"#;

/// The value of a field.
async fn value(browser: &Browser, name: &str) -> Json {
    browser.run(&format!("return document.querySelector('[name=\"{name}\"]').value")).await
}

/// The reason beside a field, which is also the description for screen readers.
async fn reason(browser: &Browser, name: &str) -> String {
    let script = "const field = document.querySelector('[name=\"NAME\"][aria-invalid=true]'); \
        return field && document.getElementById(field.getAttribute('aria-describedby')).innerText";
    browser.run(&script.replace("NAME", name)).await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_refused_request_keeps_its_input_and_names_the_field() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let browser = Browser::start(&server.url).await;
    for button in ["Dry run", "Run now"] {
        browser.open("/job-types/TAKE").await;
        browser.fill("filter.counties", "Kent").await;
        browser.fill("priority", "12").await;
        browser.go(button).await;
        assert_eq!(reason(&browser, "priority").await, "must be 0 to 9, got 12", "{button}");
        assert_eq!(value(&browser, "filter.counties").await, "Kent");
        assert_eq!(value(&browser, "priority").await, "12");
        assert_eq!(browser.accessibility_violations().await, [""; 0]);
        browser.run("document.querySelector('[name=priority]').value = ''").await;
        browser.press("More options").await;
        browser.fill("ids", "1\n[2").await;
        browser.go(button).await;
        let reason = reason(&browser, "ids").await;
        assert!(reason.starts_with("line 2: not a JSON list"), "{reason}");
        assert_eq!(value(&browser, "ids").await, "1\n[2");
        assert_eq!(value(&browser, "filter.counties").await, "Kent");
    }
    assert_eq!(server.get("/api/v1/jobs").await.is(200), json!([]));
    // The corrected form submits the job.
    browser.run("document.querySelector('[name=ids]').value = '1\\n3'").await;
    browser.go("Run now").await;
    browser.sees("Queued").await;
    let jobs = server.get("/api/v1/jobs").await.is(200);
    let job = server.get(&format!("/api/v1/jobs/{}", text(&jobs[0]["id"]))).await.is(200);
    assert_eq!(job["request"]["ids"], json!(["1", "3"]));
}

#[tokio::test]
async fn refused_limits_keep_their_input_on_the_pages_of_job_and_job_type() {
    let data = wallets().await;
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&server.url).await;
    for page in [format!("/jobs/{id}"), "/job-types/TAKE".to_owned()] {
        browser.open(&page).await;
        browser.press("Throughput…").await;
        browser.fill("concurrency", "3").await;
        browser.fill("rate", "much").await;
        browser.go("Apply").await;
        let reason = reason(&browser, "rate").await;
        assert!(reason.contains("at least 1, `unlimited` or `default`, got \"much\""), "{reason}");
        assert_eq!(value(&browser, "concurrency").await, "3", "{page}");
        assert_eq!(value(&browser, "rate").await, "much", "{page}");
        browser.run("document.querySelector('[name=rate]').value = '7'").await;
        browser.go("Apply").await;
        browser.is_at(&page).await;
        browser.press("Throughput…").await;
        browser.sees("now 7").await;
    }
}

#[tokio::test]
async fn items_and_params_are_entered_in_the_form() {
    let data = wallets().await;
    let sandbox = CliSandbox::on(&data, CALL);
    sandbox.write("call.py", SCRIPT);
    let server = TestServer::with(sandbox, 1).await;
    let browser = Browser::start(&server.url).await;
    browser.open("/job-types/CALL").await;
    browser.go("Run now").await;
    let missing = reason(&browser, "items").await;
    assert!(missing.starts_with("is missing"), "{missing}");
    browser.fill("items", "{\"id\": 1}\n{\"name\": 2}").await;
    browser.fill("params", "{\"month\": \"2025-01\", \"deep\": [1]}").await;
    browser.go("Run now").await;
    let wrong = reason(&browser, "items").await;
    assert!(wrong.contains("items[1]"), "{wrong}");
    browser
        .run("document.querySelector('[name=items]').value = '[{\"id\": 1}, {\"id\": 2}]'")
        .await;
    browser.go("Run now").await;
    browser.sees("Completed").await;
    let id = browser.path().await.replace("/jobs/", "");
    let mut rows = String::new();
    eventually("the rows are written", async || {
        rows = server.get(&format!("/api/v1/jobs/{id}/output")).await.text;
        rows.lines().count() == 2
    })
    .await;
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["params"], serde_json::json!({"month": "2025-01", "deep": [1]}), "{rows}");
    }
}

/// Declared params are fields of the form, with their type, description and default.
#[tokio::test]
async fn declared_params_are_fields_of_the_form() {
    let data = wallets().await;
    let params = "params.by = { type = \"integer\", default = 7, description = \"what to take\" }\n\
                  params.note = { type = \"text\" }\n\
                  params.day = { type = \"date\", required = false }\n";
    let step = "UPDATE wallets SET amount = amount - :by, name = :note WHERE {chunk}";
    let taken = "UPDATE wallets SET amount = amount - 10 WHERE {chunk}";
    let jobs = take(params).replace(taken, step);
    assert!(jobs.contains(step), "{jobs}");
    let server = TestServer::with(CliSandbox::on(&data, &jobs), 1).await;
    let browser = Browser::start(&server.url).await;
    browser.open("/job-types/TAKE").await;
    let field = async |name: &str| {
        let script = "const field = document.querySelector('[name=\"NAME\"]'); \
            return [field.closest('label').innerText, field.placeholder]";
        let found = browser.run(&script.replace("NAME", name)).await;
        (text(&found[0]), text(&found[1]))
    };
    let (label, default) = field("param.by").await;
    assert!(label.contains("by") && label.contains("integer: what to take"), "{label}");
    assert_eq!(default, "7");
    let (label, default) = field("param.note").await;
    assert!(label.contains("note") && label.contains("text, required"), "{label}");
    assert_eq!(default, "");
    assert!(field("param.day").await.0.contains("date"));
    assert_eq!(browser.accessibility_violations().await, [""; 0]);

    browser.go("Run now").await;
    assert!(reason(&browser, "param.note").await.contains("missing"));
    browser.fill("param.note", "007").await;
    browser.fill("param.by", "1.5").await;
    browser.go("Run now").await;
    let wrong = reason(&browser, "param.by").await;
    assert!(wrong.contains("integer") && wrong.contains("1.5"), "{wrong}");
    assert_eq!(value(&browser, "param.note").await, "007", "the input is kept");
    browser.run("document.querySelector('[name=\"param.by\"]').value = '3'").await;
    browser.run("document.querySelector('[name=\"param.day\"]').value = 'tomorrow'").await;
    browser.go("Run now").await;
    assert!(reason(&browser, "param.day").await.contains("date"));
    browser.run("document.querySelector('[name=\"param.day\"]').value = ''").await;
    browser.run("document.querySelector('[name=\"filter.counties\"]').value = 'Kent'").await;
    browser.go("Run now").await;
    browser.sees("Completed").await;
    let took = "SELECT count(*) FROM wallets WHERE amount = 4997 AND name = '007'";
    assert_eq!(data.number(took).await, 199, "the text keeps its zeros");
}
