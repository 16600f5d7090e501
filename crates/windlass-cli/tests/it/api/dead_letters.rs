//! Dead letters over HTTP: listed, shown, redriven, ignored.

use crate::api::server_fixture::TestServer;
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, text};
use serde_json::json;

async fn dead_letters_are_listed_shown_redriven_and_ignored(data: Data) {
    let server = TestServer::with(CliSandbox::on(&data, &take("")), 1).await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.until(&id, "COMPLETED").await;
    let listed = server.get("/api/v1/dead-letters").await.is(200);
    assert_eq!(listed, server.sandbox.json("dead list").await);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let letter = text(&listed[0]["id"]);
    assert_eq!(server.get(&format!("/api/v1/dead-letters/{letter}")).await.is(200), listed[0]);
    for (query, count) in [
        (format!("job={id}"), 2),
        ("jobType=TAKE".to_owned(), 2),
        ("jobType=NONE".to_owned(), 0),
        ("error=NEVER_neg".to_owned(), 2),
        ("status=ignored".to_owned(), 0),
        ("olderThan=1h".to_owned(), 0),
        ("limit=1".to_owned(), 1),
        (format!("before={letter}"), 1),
    ] {
        let found = server.get(&format!("/api/v1/dead-letters?{query}")).await.is(200);
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }

    for path in ["/api/v1/dead-letters/redrive", "/api/v1/dead-letters/ignore"] {
        let response = server.post(path, &json!({})).await;
        assert!(
            text(&response.is(400)["detail"]).contains("select dead letters by"),
            "{response:?}"
        );
    }
    data.run("UPDATE wallets SET amount = 20 WHERE id = 7").await;
    let redriven = server.post("/api/v1/dead-letters/redrive", &json!({"job": id})).await.is(200);
    assert_eq!((&redriven[0]["originalJob"], &redriven[0]["letters"]), (&json!(id), &json!(2)));
    server.until(&text(&redriven[0]["jobId"]), "COMPLETED").await;
    let left = server.get("/api/v1/dead-letters?status=new").await.is(200);
    assert_eq!(left[0]["key"], 8);
    let selection = json!({"ids": [left[0]["id"]]});
    let ignored = server.post("/api/v1/dead-letters/ignore", &selection).await.is(200);
    assert_eq!(ignored, json!({"ignored": 1}));
    assert_eq!(
        server.post("/api/v1/dead-letters/ignore", &json!({"all": true})).await.is(200)["ignored"],
        0
    );
}

on_both!(dead_letters_are_listed_shown_redriven_and_ignored,);
