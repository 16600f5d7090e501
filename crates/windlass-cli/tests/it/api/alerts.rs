//! Alerts: visible for own jobs, or for all jobs with `all_jobs`.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::{take, wallets};
use crate::common::{CliSandbox, Data, eventually, text};
use serde_json::json;

#[tokio::test]
async fn alerts_are_visible_to_those_who_see_the_job() {
    let data = wallets(Data::sqlite()).await;
    let jobs = take("failures = { budget = 0, on_exceeded = \"fail\" }\n");
    let config = jobs + "\n[alerts]\ndead_letters = 0\n" + &auth();
    let mut server = TestServer::with(CliSandbox::on(&data, &config), 1).await;
    server.token(&token("ada", "clerk"));
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    server.token(&token("eve", "chief"));
    let kinds = async |server: &TestServer, query: &str| {
        let alerts = server.get(&format!("/api/v1/alerts{query}")).await.is(200);
        let kind = |alert: &serde_json::Value| text(&alert["kind"]);
        let mut kinds: Vec<_> = alerts.as_array().unwrap().iter().map(kind).collect();
        kinds.sort();
        kinds
    };
    let all = ["budget-exceeded", "dead-letters", "job-failed"];
    eventually("all are raised", async || kinds(&server, "").await == all).await;
    assert_eq!(kinds(&server, "?limit=2").await.len(), 2);
    let page = server.get("/api/v1/alerts?limit=2").await;
    let next = page.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(server.get(&next).await.is(200).as_array().unwrap().len(), 1);
    server.get("/api/v1/alerts?limit=0").await.is_rejected(400, "limit");

    server.token(&token("ada", "clerk"));
    assert_eq!(kinds(&server, "").await, ["budget-exceeded", "job-failed"]);
    assert_eq!(server.get("/api/v1/alerts").await.json()[0]["jobId"], id.as_str());
    server.token(&token("bob", "clerk"));
    assert!(kinds(&server, "").await.is_empty());
}
