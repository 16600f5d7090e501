//! Alerts in the API: those about one's own jobs, or all.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, Data, eventually, text};
use serde_json::json;

#[tokio::test]
async fn they_are_for_those_who_see_the_job() {
    let data = savings_accounts(Data::sqlite()).await;
    let jobs = take("failures = { budget = 0, on_exceeded = \"fail\" }\n");
    let config = jobs + "\n[alerts]\ndead_letters = 0\n" + &auth();
    let mut served = Served::with(CliSandbox::on(&data, &config), 1).await;
    served.token(&token("ada", "clerk"));
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    served.token(&token("eve", "chief"));
    let kinds = async |served: &Served, query: &str| {
        let alerts = served.get(&format!("/api/v1/alerts{query}")).await.is(200);
        let kind = |alert: &serde_json::Value| text(&alert["kind"]);
        let mut kinds: Vec<_> = alerts.as_array().unwrap().iter().map(kind).collect();
        kinds.sort();
        kinds
    };
    let all = ["budget-exceeded", "dead-letters", "job-failed"];
    eventually("all are raised", async || kinds(&served, "").await == all).await;
    assert_eq!(kinds(&served, "?limit=2").await.len(), 2);
    let page = served.get("/api/v1/alerts?limit=2").await;
    let next = page.header("link").unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    assert_eq!(served.get(&next).await.is(200).as_array().unwrap().len(), 1);
    served.get("/api/v1/alerts?limit=0").await.refuses(400, "limit");

    served.token(&token("ada", "clerk"));
    assert_eq!(kinds(&served, "").await, ["budget-exceeded", "job-failed"]);
    assert_eq!(served.get("/api/v1/alerts").await.json()[0]["jobId"], id.as_str());
    served.token(&token("bob", "clerk"));
    assert!(kinds(&served, "").await.is_empty());
}
