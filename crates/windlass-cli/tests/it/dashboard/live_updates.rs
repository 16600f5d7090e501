//! Live updates: progress, pause and resume, stop and start, a lost connection.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, eventually, server};
use crate::dashboard::wallets_fixture::{take, throttled_server, wallets};
use serde_json::json;
use windlass_testkit::{Browser, free_port};

/// The progress that the page shows.
async fn progress(browser: &Browser) -> f64 {
    let bar = browser.run("return document.querySelector('main progress')?.value ?? -1").await;
    bar.as_f64().unwrap()
}

/// Marks the page, so that a reload can be detected.
async fn mark(browser: &Browser) {
    browser.run("window.same = true").await;
}

async fn is_the_same(browser: &Browser) -> bool {
    browser.run("return window.same === true").await == json!(true)
}

/// A throttled server, and a browser that shows this page of it.
async fn opened(path: &str) -> (Data, TestServer, Browser) {
    let (data, server) = throttled_server().await;
    let browser = Browser::start(&server.url).await;
    browser.open(path).await;
    (data, server, browser)
}

#[tokio::test]
async fn a_job_is_run_watched_paused_resumed_and_audited() {
    let (_data, server, browser) = opened("/job-types/TAKE").await;
    browser.go("Run now").await;
    browser.sees("Processing chunks").await;
    mark(&browser).await;
    let begun = progress(&browser).await;
    eventually("the bar moves", async || progress(&browser).await > begun).await;
    let before = progress(&browser).await;
    eventually("and on", async || progress(&browser).await > before).await;
    assert!(is_the_same(&browser).await, "the page was reloaded");
    let id = browser.path().await.trim_start_matches("/jobs/").to_owned();

    browser.go("Pause").await;
    browser.sees("Paused").await;
    assert_eq!(server.until(&id, "PAUSED").await["status"], "PAUSED");
    assert!(!browser.offers("Pause").await);
    browser.go("Resume").await;
    browser.sees("Running").await;

    browser.press("Throughput…").await;
    browser.fill("rate", "unlimited").await;
    browser.go("Apply").await;
    // The limit of the job type applies too.
    server.sandbox.run("throughput TAKE --rate unlimited").await.ok();
    mark(&browser).await;
    browser.sees_all(&["Completed", "2\ndead letters"]).await;
    assert!(is_the_same(&browser).await);
    browser.go("Audit").await;
    browser.sees("Proven").await;
}

#[tokio::test]
async fn live_updates_keep_open_details_and_input() {
    let (_data, server, browser) = opened("/").await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.press("Throughput…").await;
    browser.fill("concurrency", "12").await;
    let before = progress(&browser).await;
    eventually("the bar moves", async || progress(&browser).await > before).await;
    let written = "return document.querySelector('[name=concurrency]').value";
    assert_eq!(browser.run(written).await, json!("12"));
    let open = "return document.querySelector('[name=concurrency]').closest('details').open";
    assert_eq!(browser.run(open).await, json!(true));
    let focus = "return document.activeElement.name";
    assert_eq!(browser.run(focus).await, json!("concurrency"));
}

/// A replaced field would lose its input, and a replaced button the click of a user.
#[tokio::test]
async fn live_updates_replace_no_form_of_any_page() {
    let (_data, server, browser) = opened("/").await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    // From now on it only works, until the end of the test, so the pages have the same forms all the time.
    server.sandbox.run("throughput TAKE --rate 1").await.ok();
    eventually("both dead letters are there", async || {
        server.get(&format!("/api/v1/jobs/{id}")).await.is(200)["items"]["dead"] == 2
    })
    .await;
    let job = format!("/jobs/{id}");
    let pages = [
        "/",
        "/jobs",
        &job,
        "/dead-letters",
        "/job-types/TAKE",
        "/schedules",
        "/workers",
        "/alerts",
    ];
    for page in pages {
        browser.open(page).await;
        let count_updates = "window.forms = [...document.querySelectorAll('main form, main form *')]; \
            const load = window.fetch; window.updates = 0; \
            window.fetch = async (...args) => { const got = await load(...args); window.updates++; return got; }";
        browser.run(count_updates).await;
        // The third request is sent after the second answer was shown.
        eventually("the page is updated", async || {
            browser.run("return window.updates").await.as_i64() >= Some(3)
        })
        .await;
        let replaced = "return window.forms.filter(e => !e.isConnected).map(e => e.outerHTML)";
        assert_eq!(browser.run(replaced).await, json!([]), "{page}");
    }
}

#[tokio::test]
async fn a_chunk_is_opened_and_a_job_cancelled() {
    let (_data, server, browser) = opened("/").await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    browser.shows(&format!("/jobs/{id}"), "40 chunks").await;
    let cells = "return document.querySelectorAll('.cells .cell').length";
    assert_eq!(browser.run(cells).await, json!(40));
    browser.run("document.querySelector('.cells .cell').click()").await;
    browser.sees_all(&["Chunk 0", "Keys"]).await;
    browser.press("Cancel…").await;
    browser.go("Cancel job").await;
    browser.sees("Cancelled").await;
    server.until(&id, "CANCELLED").await;
}

#[tokio::test]
async fn the_emergency_stop_is_shown_on_every_page() {
    let (_data, server, browser) = opened("/").await;
    browser.sees("Processing is enabled.").await;
    browser.press("Emergency stop…").await;
    browser.go("Stop processing").await;
    for page in ["/", "/jobs", "/dead-letters", "/job-types", "/schedules", "/workers"] {
        browser.shows(page, "Processing is stopped.").await;
    }
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    browser.go("Start processing").await;
    browser.sees_all(&["Processing is enabled.", "Running"]).await;
    browser.shows(&format!("/jobs/{id}"), "Processing chunks").await;
}

#[tokio::test]
async fn pages_recover_when_the_server_restarts() {
    let data = wallets().await;
    let sandbox = CliSandbox::on(&data, &take("throughput = { items_per_second = 2 }\n"));
    // A port that no other process is given meanwhile.
    let listen = format!("127.0.0.1:{}", free_port());
    let process = sandbox.spawn(&format!("serve --listen {listen} --concurrency 2"));
    let browser = Browser::start(&server::url(&process).await).await;
    browser.open("/").await;
    browser.sees("No active jobs.").await;
    mark(&browser).await;
    process.kill9();
    process.wait().await;
    browser.sees("Connection lost").await;
    // After the restart, the page shows what happened in between, and updates again.
    sandbox.submit("TAKE").await;
    let again = sandbox.spawn(&format!("serve --listen {listen} --concurrency 2"));
    browser.sees("Running").await;
    browser.misses("Connection lost").await;
    let before = progress(&browser).await;
    eventually("the bar moves", async || progress(&browser).await > before).await;
    assert!(is_the_same(&browser).await, "the page was reloaded");
    drop(again);
}
