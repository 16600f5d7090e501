//! The screenshots of the documentation: the nightly jobs of a bank. `cargo xtask screenshots` runs this
//! test and copies the files from `target/dashboard/scene` to `docs/images`.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, eventually, text};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use windlass_testkit::{Browser, Screen};

/// The number of transactions.
const TRANSACTIONS: i64 = 120_000;

/// The job types of the bank.
const JOBS: &str = r#"
[jobs.SETTLE]
description = "Settle the day's transactions with every branch"
source.connection = "app"
source.table = "transactions"
source.filters = { branches = "branch" }
step.sql = "UPDATE transactions SET settled = true WHERE {chunk}"
chunk.items = 500
throughput = { concurrency = 4, items_per_second = 2000 }
failures = { budget = "0.1%", on_exceeded = "pause" }
schedule = { cron = "0 2 * * *", timezone = "Europe/London", deadline = "3h" }

[jobs.CLEAR_CARDS]
description = "Clear the card payments of a branch"
source.connection = "app"
source.table = "cards"
source.filters = { branches = "branch" }
step.sql = "UPDATE cards SET cleared = cleared + 1 WHERE {chunk}"
schedule = { cron = "*/30 * * * *", timezone = "Europe/London", missed = "skip" }

[jobs.INVOICES]
description = "Write the month's invoices"
source.connection = "app"
source.table = "customers"
step.command = ["python3", "invoice.py"]
step.version = "version"
chunk.items = 200
schedule = { cron = "0 6 1 * *", timezone = "Europe/London", deadline = "2h" }

[jobs.INTEREST]
description = "Interest of savings accounts, by the rate of the day"
source.connection = "app"
source.table = "cards"
step.sql = "UPDATE cards SET interest = interest + 1 WHERE {chunk}"
chunk.items = 100
throughput = { items_per_second = 100 }

[jobs.ARCHIVE]
description = "Statements older than seven years go to the archive"
source.connection = "app"
source.table = "statements"
step.sql = "UPDATE statements SET archived = true WHERE {chunk}"
chunk.items = 100

[jobs.SUMMARY]
description = "What every branch earned"
source.connection = "app"
source.table = "customers"
step.sql = "UPDATE customers SET summary = 1 WHERE {chunk}"

[[dependencies]]
job = "SUMMARY"
after = ["INVOICES"]
"#;

/// Some customers cannot be invoiced, for different reasons.
const INVOICE: &str = r#"
import json, sys

def invoice(item):
    id, key = item["record"]["id"], item["key"]
    if id % 97 == 0:
        return {"key": key, "error": {"message": "the VAT number is not valid", "context": {"number": f"GB{id:09}"}}}
    if id % 331 == 0:
        return {"key": key, "error": "the address has no postcode"}
    if id % 997 == 0:
        return {"key": key, "error": "the account was closed before the end of the month"}
    return {"key": key, "update": {"invoiced": True}}

for line in sys.stdin:
    print(json.dumps({"results": [invoice(item) for item in json.loads(line)["items"]]}), flush=True)
"#;

#[tokio::test]
async fn documentation_screenshots() {
    let data = bank().await;
    let sandbox = CliSandbox::on(&data, JOBS);
    sandbox.write("invoice.py", INVOICE);
    let server = TestServer::with(sandbox, 4).await;
    a_day_of_work(&server, &data).await;
    what_went_wrong(&server, &data).await;
    let night = the_night(&server, &data).await;

    let desk = Browser::with_screen(&server.url, Screen::Desktop).await;
    let job = format!("/jobs/{night}");
    for (name, path, height) in [
        ("overview", "/", 1250),
        ("job", job.as_str(), 1180),
        ("dead-letters", "/dead-letters", 960),
        ("job-type", "/job-types/SETTLE", 1130),
    ] {
        desk.client.set_window_size(1280, height).await.unwrap();
        picture(&desk, name, path).await;
    }
    let dark = Browser::with_screen(&server.url, Screen::DesktopDark).await;
    dark.client.set_window_size(1280, 1250).await.unwrap();
    picture(&dark, "overview-dark", "/").await;
    let phone = Browser::with_screen(&server.url, Screen::Phone).await;
    picture(&phone, "phone", "/").await;
    let job = server.get(&format!("/api/v1{job}")).await.is(200);
    assert_eq!(job["status"], "PROCESSING", "the job ended before the last screenshot");
}

async fn picture(browser: &Browser, name: &str, path: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../dashboard/scene");
    std::fs::create_dir_all(&folder).unwrap();
    browser.open(path).await;
    browser.screenshot(&folder.join(format!("{name}.png"))).await;
}

/// The bank's database.
async fn bank() -> Data {
    let data = Data::postgres().await;
    data.run(&format!(
        "CREATE TABLE transactions (id bigint PRIMARY KEY, branch text NOT NULL,
             cents bigint NOT NULL, settled boolean NOT NULL DEFAULT false);
         INSERT INTO transactions (id, branch, cents)
             SELECT n, 'branch ' || n % 40, n * 7 % 90000 FROM generate_series(1, {TRANSACTIONS}) n;
         CREATE INDEX transactions_branch ON transactions (branch, id);
         CREATE TABLE cards (id bigint PRIMARY KEY, branch text NOT NULL,
             cleared integer NOT NULL DEFAULT 0, interest integer NOT NULL DEFAULT 0);
         INSERT INTO cards (id, branch)
             SELECT n, 'branch ' || n % 40 FROM generate_series(1, 8000) n;
         CREATE INDEX cards_branch ON cards (branch, id);
         CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL,
             invoiced boolean NOT NULL DEFAULT false, summary integer, version bigint NOT NULL DEFAULT 1);
         INSERT INTO customers (id, name)
             SELECT n, 'Customer ' || n FROM generate_series(1, 3000) n;
         CREATE TABLE statements (id bigint PRIMARY KEY, archived boolean NOT NULL DEFAULT false);
         INSERT INTO statements (id) SELECT n FROM generate_series(1, 2000) n;"
    ))
    .await;
    data
}

/// Runs the jobs of a day. Their times are then spread over the last 24 hours.
async fn a_day_of_work(server: &TestServer, data: &Data) {
    let mut last = String::new();
    for run in 0..46 {
        let branches = json!([format!("branch {}", run % 40), format!("branch {}", run * 7 % 40)]);
        last = server
            .submit(json!({"jobType": "CLEAR_CARDS", "filter": {"branches": branches}}))
            .await;
    }
    server.until(&last, "COMPLETED").await;
    // The schedule may add one.
    eventually("all have ended", async || count(server, "CLEAR_CARDS", "COMPLETED").await >= 46)
        .await;
    data.run(
        "WITH spread AS (
             SELECT id, (n * 30 + n * n % 47) * interval '1 minute' AS back
             FROM (SELECT id, row_number() OVER (ORDER BY created_at DESC) AS n
                   FROM windlass_jobs) AS numbered)
         UPDATE windlass_jobs SET created_at = created_at - back, started_at = started_at - back,
             finished_at = finished_at - back
         FROM spread WHERE windlass_jobs.id = spread.id",
    )
    .await;
}

/// Creates dead letters, a failed job and a paused job.
async fn what_went_wrong(server: &TestServer, data: &Data) {
    let invoices = server.submit(json!({"jobType": "INVOICES"})).await;
    server.until(&invoices, "COMPLETED").await;
    server.sandbox.run("stop ARCHIVE").await.ok();
    let archive = server.submit(json!({"jobType": "ARCHIVE"})).await;
    data.run("ALTER TABLE statements RENAME COLUMN archived TO archived_on").await;
    server.sandbox.run("start ARCHIVE").await.ok();
    server.until(&archive, "FAILED").await;
    let interest = server.submit(json!({"jobType": "INTEREST"})).await;
    done(server, &interest, 1000).await;
    server.post(&format!("/api/v1/jobs/{interest}/pause"), &json!({})).await.is(200);
    eventually("the alert is raised", async || {
        server.get("/api/v1/alerts").await.text.contains("job-failed")
    })
    .await;
}

/// The scheduled job, partly done.
async fn the_night(server: &TestServer, data: &Data) -> String {
    data.run(
        "UPDATE windlass_schedules SET next_at = date_trunc('minute', clock_timestamp())
         WHERE job_type = 'SETTLE'",
    )
    .await;
    let mut id = String::new();
    eventually("the night begins", async || {
        let jobs = jobs(server, "SETTLE").await;
        id = jobs.first().map(|job| text(&job["id"])).unwrap_or_default();
        !id.is_empty()
    })
    .await;
    done(server, &id, TRANSACTIONS * 4 / 10).await;
    // So that it does not end before the last screenshot.
    server.put(&format!("/api/v1/jobs/{id}/throughput"), &json!({"rate": 200})).await.is(200);
    id
}

/// Waits until this many items of a job are processed.
async fn done(server: &TestServer, id: &str, items: i64) {
    eventually("a part is done", async || {
        let job = server.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        assert!(job["status"] != "COMPLETED", "too fast for a screenshot");
        job["items"]["processed"].as_i64().unwrap() >= items
    })
    .await;
}

async fn jobs(server: &TestServer, job_type: &str) -> Vec<Json> {
    let path = format!("/api/v1/jobs?jobType={job_type}&limit=100");
    server.get(&path).await.is(200).as_array().unwrap().clone()
}

async fn count(server: &TestServer, job_type: &str, status: &str) -> usize {
    jobs(server, job_type).await.iter().filter(|job| job["status"] == status).count()
}
