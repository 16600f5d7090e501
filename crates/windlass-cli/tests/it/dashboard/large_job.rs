//! A job with more than 100,000 chunks: the page stays small, and every chunk can be reached.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, eventually};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// Chosen so that the last cell and the last page of a cell are not full.
const CHUNKS: i64 = 100_500;

#[tokio::test]
async fn a_large_job_is_aggregated_and_paginated() {
    let data = Data::sqlite();
    let numbers = data.numbers(CHUNKS);
    data.run(&format!(
        "CREATE TABLE grains (id bigint PRIMARY KEY NOT NULL, sown bigint NOT NULL DEFAULT 0);
         INSERT INTO grains (id) SELECT n FROM ({numbers}) AS numbers"
    ))
    .await;
    let jobs = "[jobs.SOW]\nsource.connection = \"app\"\nsource.table = \"grains\"\n\
        step.sql = \"UPDATE grains SET sown = 1 WHERE {chunk}\"\nchunk.items = 1\n\
        throughput = { items_per_second = 10 }\n";
    let server = TestServer::with(CliSandbox::on(&data, jobs), 2).await;
    let id = server.submit(json!({"jobType": "SOW"})).await;
    eventually("all chunks are cut", async || {
        let job = server.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        job["chunks"]["total"] == CHUNKS && job["phase"] == "working"
    })
    .await;
    let browser = Browser::start(&server.url).await;
    browser.shows(&format!("/jobs/{id}"), "Each cell represents 101 consecutive chunks.").await;
    let elements = "return document.querySelectorAll('*').length";
    assert!(browser.run(elements).await.as_i64().unwrap() < 3000);
    // The page updates while it is open.
    let done = "return document.querySelector('main .line:has(.big)').innerText";
    let before = browser.run(done).await;
    eventually("it moves", async || browser.run(done).await != before).await;
    assert!(browser.run(elements).await.as_i64().unwrap() < 3000);

    // The cells cover all chunks without gaps.
    let cells = "return [...document.querySelectorAll('.cells a')].map(cell => { \
        const asked = new URL(cell.href).searchParams; \
        return [Number(asked.get('after')), Number(asked.get('upto'))] })";
    let cells: Vec<(i64, i64)> = serde_json::from_value(browser.run(cells).await).unwrap();
    let mut reached = -1;
    for (after, upto) in &cells {
        assert_eq!(*after, reached);
        reached = *upto;
    }
    assert_eq!((cells.len(), reached), (996, CHUNKS - 1));

    // A cell links to its chunks, paginated, and to no others.
    browser.run("document.querySelectorAll('.cells a')[500].click()").await;
    let mut chunks: Vec<i64> = Vec::new();
    browser.sees("Chunks 50500 to 50600").await;
    loop {
        let listed = "return [...document.querySelectorAll('#list tbody td:first-child')] \
            .map(cell => Number(cell.innerText))";
        let listed: Json = browser.run(listed).await;
        chunks.extend(serde_json::from_value::<Vec<i64>>(listed).unwrap());
        assert!(chunks.len() <= 101, "{chunks:?}");
        if !browser.offers("More chunks").await {
            break;
        }
        browser.go("More chunks").await;
    }
    assert_eq!(chunks, (50_500..50_601).collect::<Vec<_>>());
}
