//! A job of 100,000 chunks and some more: what is drawn is bounded, and every chunk can be reached.

use crate::api::served::Served;
use crate::common::{CliSandbox, Data, eventually};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// The last page of a cell is not full, and neither is the last cell.
const CHUNKS: i64 = 100_500;

#[tokio::test]
async fn aggregates_are_drawn_and_the_rest_is_paged() {
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
    let served = Served::with(CliSandbox::on(&data, jobs), 2).await;
    let id = served.submit(json!({"jobType": "SOW"})).await;
    eventually("all chunks are cut", async || {
        let job = served.get(&format!("/api/v1/jobs/{id}")).await.is(200);
        job["chunks"]["total"] == CHUNKS && job["phase"] == "working"
    })
    .await;
    let browser = Browser::start(&served.url).await;
    browser.open(&format!("/jobs/{id}")).await;
    browser.sees("A cell stands for 101 chunks").await;
    let elements = "return document.querySelectorAll('*').length";
    assert!(browser.run(elements).await.as_i64().unwrap() < 3000);
    // It goes on while somebody looks.
    let done = "return document.querySelector('main .line:has(.big)').innerText";
    let before = browser.run(done).await;
    eventually("it moves", async || browser.run(done).await != before).await;
    assert!(browser.run(elements).await.as_i64().unwrap() < 3000);

    // The cells are all chunks, one stretch after another.
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

    // A cell opens its chunks, a page at a time, and nothing beyond them.
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
