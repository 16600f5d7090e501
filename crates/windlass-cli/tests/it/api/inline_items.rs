//! Requests with inline items.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data, text};
use serde_json::{Value as Json, json};

const MOST: usize = 8 << 20;

async fn start_server() -> (Data, TestServer) {
    let data = Data::sqlite();
    data.run("CREATE TABLE t (a integer)").await;
    let jobs = "[jobs.POINTS]\nsource = { connection = \"app\", items = true, key = [\"id\"] }\n\
                step.handler = \"none\"\n";
    let sandbox = CliSandbox::on(&data, jobs);
    (data, TestServer::start(sandbox).await)
}

fn request(bytes: usize) -> Json {
    json!({"jobType": "POINTS", "items": [{"id": 1, "text": "x".repeat(bytes)}]})
}

#[tokio::test]
async fn the_largest_request_is_accepted_and_a_larger_one_rejected() {
    let (_data, server) = start_server().await;
    let around = request(0).to_string().len();
    let job = server.post("/api/v1/jobs", &request(MOST - around)).await.is(201);
    assert_eq!(job["items"]["total"], 1, "its one item is planned by the submit");
    let listed = server.get("/api/v1/jobs").await;
    assert!(listed.text.len() < 10_000, "a listing has {} bytes", listed.text.len());
    let refused = server.post("/api/v1/jobs", &request(MOST - around + 1)).await.is(400);
    let detail = text(&refused["detail"]);
    assert!(detail.contains("8388609") && detail.contains("8388608"), "{detail}");
    // White space does not count towards the limit.
    let spaced = request(MOST - around).to_string().replace("{", "{    ");
    let sent = server.request(reqwest::Method::POST, "/api/v1/jobs");
    let sent = sent.header("content-type", "application/json").body(spaced);
    assert_eq!(crate::api::server_fixture::ApiResponse::of(sent).await.status, 201);
}

#[tokio::test]
async fn an_invalid_item_is_named() {
    let (_data, server) = start_server().await;
    let items = json!([{"id": 1}, {"id": 2}, {"id": 1}]);
    let refused = server.post("/api/v1/jobs", &json!({"jobType": "POINTS", "items": items})).await;
    let problem = refused.is(400);
    assert!(problem.to_string().contains("items[2]"), "{problem:#}");
    assert!(problem.to_string().contains("has the key of items[0]"), "{problem:#}");
}
