//! Numbers are never broken or cut off, however large they are and however narrow the window is. Times are shown in the
//! viewer's time zone, with UTC in the tooltip.

use crate::dashboard::wallets_fixture::server_with_dead_letters;
use serde_json::json;
use windlass_testkit::Browser;

/// Finds numbers that are broken into two lines, or that end outside of the element or window that contains them.
const BROKEN: &str = r#"
const broken = [];
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  if (node.parentElement.closest("pre, svg, .visually-hidden, details:not([open])")) continue;
  for (const match of node.data.matchAll(/\d[\d,.]*\d/g)) {
    const range = document.createRange();
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].length);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
    if (boxes.length === 0) continue;
    const box = boxes[0];
    const scrolls = node.parentElement.closest(".scroll");
    const around = node.parentElement.closest(".figure, .card, td, dd, section, p, main").getBoundingClientRect();
    if (boxes.length > 1) broken.push("in two lines: " + match[0]);
    else if (box.right > around.right + 1) broken.push("overflows its element: " + match[0]);
    else if (!scrolls && box.right > innerWidth) broken.push("overflows the window: " + match[0]);
  }
}
return broken;
"#;

#[tokio::test]
async fn huge_numbers_are_never_broken_or_cut_off() {
    let (_data, server, id) = server_with_dead_letters().await;
    let huge = i64::MAX / 3;
    let store = rusqlite::Connection::open(server.sandbox.path("windlass.db")).unwrap();
    store.busy_timeout(crate::common::PATIENCE).unwrap();
    let counts = format!(
        "UPDATE windlass_jobs SET items_total = {huge}, processed = {huge} - 1234567, skipped = {huge} / 1000,
             conflicts = {huge} / 7, dead = 123456789, chunks_total = 987654321"
    );
    store.execute(&counts, []).unwrap();
    store.execute(&format!("UPDATE windlass_chunks SET items = {huge} / 400"), []).unwrap();
    drop(store);
    let report = format!("/api/v1/jobs/{id}/report");
    let browser = Browser::start(&server.url).await;
    for width in [320, 390, 640, 1280] {
        browser.client.set_window_size(width, 900).await.unwrap();
        for path in [
            "/",
            "/jobs",
            "/job-types/TAKE",
            "/dead-letters",
            &report,
            &format!("/jobs/{id}?chunk=0&after=-1"),
        ] {
            browser.open(path).await;
            assert_eq!(browser.run(BROKEN).await, json!([]), "{path} at a width of {width}");
            let wide = "return document.documentElement.scrollWidth > window.innerWidth";
            assert_eq!(browser.run(wide).await, json!(false), "{path} at {width} is too wide");
        }
    }
}

#[tokio::test]
async fn times_are_in_the_time_zone_of_the_viewer() {
    let (_data, server, id) = server_with_dead_letters().await;
    let browser = Browser::in_time_zone(&server.url, "Asia/Tokyo").await;
    browser.open("/").await;
    browser.sees("Times are in Asia/Tokyo.").await;
    let store = rusqlite::Connection::open(server.sandbox.path("windlass.db")).unwrap();
    store.busy_timeout(crate::common::PATIENCE).unwrap();
    // 2026-01-31 20:12:07 UTC is the next day in Tokyo.
    let at = "UPDATE windlass_jobs SET created_at = 1769890327000";
    store.execute(at, []).unwrap();
    drop(store);
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("2026-02-01 05:12:07 GMT+9").await;
    let tooltip =
        "return [...document.querySelectorAll('time[data-style]')].map(time => time.title)";
    let tooltips = browser.run(tooltip).await;
    assert!(tooltips.as_array().unwrap().contains(&json!("2026-01-31 20:12:07 UTC")), "{tooltips}");
    // Without the script the times are UTC.
    let page = server.get(&format!("/jobs/{id}")).await.text;
    assert!(page.contains("2026-01-31 20:12:07 UTC</time>"), "{page}");
}
