//! Requests that carry their records, over HTTP.

use crate::api::served::Served;
use crate::common::{CliSandbox, Data, text};
use serde_json::{Value as Json, json};

const MOST: usize = 8 << 20;

async fn served() -> (Data, Served) {
    let data = Data::sqlite();
    data.run("CREATE TABLE t (a integer)").await;
    let jobs = "[jobs.POINTS]\nsource = { connection = \"app\", items = true, key = [\"id\"] }\n\
                step.handler = \"none\"\n";
    let sandbox = CliSandbox::on(&data, jobs);
    (data, Served::start(sandbox).await)
}

fn request(bytes: usize) -> Json {
    json!({"jobType": "POINTS", "items": [{"id": 1, "text": "x".repeat(bytes)}]})
}

#[tokio::test]
async fn the_largest_request_is_taken_and_a_larger_one_refused_with_both_figures() {
    let (_data, served) = served().await;
    let around = request(0).to_string().len();
    let job = served.post("/api/v1/jobs", &request(MOST - around)).await.is(201);
    assert_eq!(job["items"]["total"], 0, "nothing is loaded yet");
    let listed = served.get("/api/v1/jobs").await;
    assert!(listed.text.len() < 10_000, "a listing has {} bytes", listed.text.len());
    let refused = served.post("/api/v1/jobs", &request(MOST - around + 1)).await.is(400);
    let detail = text(&refused["detail"]);
    assert!(detail.contains("8388609") && detail.contains("8388608"), "{detail}");
    // White space does not count.
    let spaced = request(MOST - around).to_string().replace("{", "{    ");
    let sent = served.request(reqwest::Method::POST, "/api/v1/jobs");
    let sent = sent.header("content-type", "application/json").body(spaced);
    assert_eq!(crate::api::served::Answer::of(sent).await.status, 201);
}

#[tokio::test]
async fn what_is_wrong_with_an_item_is_named() {
    let (_data, served) = served().await;
    let items = json!([{"id": 1}, {"id": 2}, {"id": 1}]);
    let refused = served.post("/api/v1/jobs", &json!({"jobType": "POINTS", "items": items})).await;
    let problem = refused.is(400);
    assert!(problem.to_string().contains("items[2]"), "{problem:#}");
    assert!(problem.to_string().contains("has the key of items[0]"), "{problem:#}");
}
