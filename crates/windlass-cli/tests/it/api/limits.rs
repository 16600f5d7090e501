//! How often one may ask.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::{Served, auth, token};
use crate::common::{CliSandbox, Data, eventually};

#[tokio::test]
async fn whoever_asks_too_often_is_told_when_to_come_again_and_others_are_served() {
    let data = savings_accounts(Data::sqlite()).await;
    let config = take("") + &auth() + "\n[server]\nrequests_per_second = 1\n";
    let mut served = Served::start(CliSandbox::on(&data, &config)).await;
    served.token(&token("ada", "clerk"));
    let mut refused = None;
    eventually("ada has asked too often", async || {
        let answers = [served.get("/api/v1/jobs").await, served.get("/api/v1/jobs").await];
        refused = answers.into_iter().find(|answer| answer.status == 429);
        refused.is_some()
    })
    .await;
    assert_eq!(refused.unwrap().header("retry-after"), Some("1"));
    assert_eq!(served.token(&token("bob", "clerk")).get("/api/v1/jobs").await.status, 200);
    served.token("nonsense");
    eventually("strangers have asked too often", async || {
        let answers = [served.get("/api/v1/jobs").await, served.get("/api/v1/jobs").await];
        answers.iter().any(|answer| answer.status == 429)
    })
    .await;
    assert_eq!(served.get("/healthz").await.status, 200);
}
