//! Pages that stay true while somebody looks: progress, pause and resume, a server that goes away.

use crate::api::served::Served;
use crate::common::eventually;
use crate::dashboard::fixture::slow;
use serde_json::json;
use windlass_testkit::Browser;

/// How far the page says that the job is.
async fn progress(browser: &Browser) -> f64 {
    let bar = browser.run("return document.querySelector('main progress')?.value ?? -1").await;
    bar.as_f64().unwrap()
}

/// Marks the page, so that one can tell whether it was ever asked for anew as a whole.
async fn mark(browser: &Browser) {
    browser.run("window.same = true").await;
}

async fn is_the_same(browser: &Browser) -> bool {
    browser.run("return window.same === true").await == json!(true)
}

#[tokio::test]
async fn a_job_is_run_watched_paused_resumed_hurried_and_proven() {
    let (_data, served) = slow().await;
    let browser = Browser::start(&served.url).await;
    browser.open("/job-types/TAKE").await;
    browser.go("Run now").await;
    browser.sees("Working through the chunks").await;
    mark(&browser).await;
    let begun = progress(&browser).await;
    eventually("the bar moves", async || progress(&browser).await > begun).await;
    let before = progress(&browser).await;
    eventually("and on", async || progress(&browser).await > before).await;
    assert!(is_the_same(&browser).await, "the page was loaded anew");
    let id = browser.path().await.trim_start_matches("/jobs/").to_owned();

    browser.go("Pause").await;
    browser.sees("Paused").await;
    assert_eq!(served.until(&id, "PAUSED").await["status"], "PAUSED");
    assert!(!browser.offers("Pause").await);
    browser.go("Resume").await;
    browser.sees("Running").await;

    browser.press("Throughput…").await;
    browser.fill("rate", "unlimited").await;
    browser.go("Set").await;
    mark(&browser).await;
    browser.sees("Completed").await;
    browser.sees("2\ndead letters").await;
    assert!(is_the_same(&browser).await);
    browser.go("Prove that nothing was missed").await;
    browser.sees("Proven").await;
}

#[tokio::test]
async fn what_is_open_and_half_written_stays_while_the_page_moves() {
    let (_data, served) = slow().await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&served.url).await;
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

#[tokio::test]
async fn a_chunk_is_opened_and_a_job_cancelled() {
    let (_data, served) = slow().await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("40 chunks").await;
    let cells = "return document.querySelectorAll('.cells .cell').length";
    assert_eq!(browser.run(cells).await, json!(40));
    browser.run("document.querySelector('.cells .cell').click()").await;
    browser.sees("Chunk 0").await;
    browser.sees("Records").await;
    browser.press("Cancel…").await;
    browser.go("Cancel this job").await;
    browser.sees("Cancelled").await;
    served.until(&id, "CANCELLED").await;
}

#[tokio::test]
async fn everything_is_stopped_and_started_and_nobody_can_miss_it() {
    let (_data, served) = slow().await;
    let browser = Browser::start(&served.url).await;
    browser.open("/").await;
    browser.sees("Work is on.").await;
    browser.press("Emergency stop…").await;
    browser.go("Stop everything").await;
    for page in ["/", "/jobs", "/dead-letters", "/job-types", "/schedules", "/workers"] {
        browser.open(page).await;
        browser.sees("Everything is stopped.").await;
    }
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    browser.go("Start again").await;
    browser.sees("Work is on.").await;
    browser.sees("Running").await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("Working through the chunks").await;
}

#[tokio::test]
async fn the_server_is_lost_and_regained() {
    let (_data, served) = slow().await;
    let browser = Browser::start(&served.url).await;
    browser.open("/").await;
    browser.sees("Nothing runs and nothing waits.").await;
    mark(&browser).await;
    let listen = served.url.trim_start_matches("http://").to_owned();
    let Served { sandbox, process, .. } = served;
    process.kill9();
    process.wait().await;
    browser.sees("Connection lost").await;
    // What happens meanwhile is there when the server is back, and so is what happens then.
    sandbox.submit("TAKE").await;
    let again = sandbox.spawn(&format!("serve --listen {listen} --concurrency 2"));
    browser.sees("Running").await;
    browser.misses("Connection lost").await;
    let before = progress(&browser).await;
    eventually("the bar moves", async || progress(&browser).await > before).await;
    assert!(is_the_same(&browser).await, "the page was loaded anew");
    drop(again);
}
