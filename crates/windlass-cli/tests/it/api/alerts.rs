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
    let all = ["budget-exceeded", "dead-letters"];
    eventually("all are raised", async || kinds(&server, "").await == all).await;
    assert_eq!(kinds(&server, "?limit=1").await.len(), 1);
    let page = server.get("/api/v1/alerts?limit=1").await;
    let next = page.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(server.get(&next).await.is(200).as_array().unwrap().len(), 1);
    server.get("/api/v1/alerts?limit=0").await.is_rejected(400, "limit");

    server.token(&token("ada", "clerk"));
    assert_eq!(kinds(&server, "").await, ["budget-exceeded"]);
    assert_eq!(server.get("/api/v1/alerts").await.json()[0]["jobId"], id.as_str());
    let alert = text(&server.get("/api/v1/alerts").await.json()[0]["id"]);
    let acknowledge = format!("/api/v1/alerts/{alert}/acknowledge");
    server.token(&token("ada", "viewer"));
    assert_eq!(server.post(&acknowledge, &json!({})).await.status, 403, "a viewer");
    server.token(&token("bob", "clerk"));
    assert_eq!(server.post(&acknowledge, &json!({})).await.status, 404, "another submitter");
    assert!(kinds(&server, "").await.is_empty());

    server.token(&token("eve", "chief"));
    let acknowledged = server.post(&acknowledge, &json!({})).await.is(200);
    assert_eq!(acknowledged["acknowledgedBy"], "eve");
    assert!(!acknowledged["acknowledgedAt"].is_null());
    assert_eq!(kinds(&server, "?open=true").await, ["dead-letters"]);
    let nil = uuid::Uuid::nil();
    let unknown = server.post(&format!("/api/v1/alerts/{nil}/acknowledge"), &json!({})).await;
    assert_eq!(unknown.status, 404);
}
