//! The request rate limit.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::{take, wallets};
use crate::common::{CliSandbox, Data, eventually};

#[tokio::test]
async fn the_rate_limit_is_per_caller() {
    let data = wallets(Data::sqlite()).await;
    let config = take("") + &auth() + "\n[server]\nrequests_per_second = 1\n";
    let mut server = TestServer::start(CliSandbox::on(&data, &config)).await;
    server.token(&token("ada", "clerk"));
    let mut refused = None;
    eventually("ada exceeds the limit", async || {
        let responses = [server.get("/api/v1/jobs").await, server.get("/api/v1/jobs").await];
        refused = responses.into_iter().find(|response| response.status == 429);
        refused.is_some()
    })
    .await;
    assert_eq!(refused.unwrap().header("retry-after"), Some("1"));
    assert_eq!(server.token(&token("bob", "clerk")).get("/api/v1/jobs").await.status, 200);
    server.token("nonsense");
    eventually("unauthenticated requests exceed the limit", async || {
        let responses = [server.get("/api/v1/jobs").await, server.get("/api/v1/jobs").await];
        responses.iter().any(|response| response.status == 429)
    })
    .await;
    assert_eq!(server.get("/healthz").await.status, 200);
}
