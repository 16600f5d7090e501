//! Alerts are delivered at least once, and delivery never blocks jobs.

use crate::alerts::fixture::{HIDDEN, SECRET, break_one, listed, sandbox, serve};
use crate::alerts::webhook_receiver::Receiver;
use crate::common::{CliSandbox, Data, eventually};
use windlass_testkit::free_port;

/// Whether every alert has been tried and is still pending.
async fn all_pending(sandbox: &CliSandbox) -> bool {
    let alerts = listed(sandbox).await;
    let waits =
        |alert: &serde_json::Value| alert["delivery"] == "pending" && alert["attempts"] != 0;
    alerts.len() == 2 && alerts.iter().all(waits)
}

async fn all_delivered(sandbox: &CliSandbox) -> bool {
    listed(sandbox).await.iter().all(|alert| alert["delivery"] == "delivered")
}

#[tokio::test]
async fn alerts_are_delivered_when_the_receiver_is_back() {
    for data in Data::both_with_accounts(3).await {
        let port = free_port();
        let sandbox = sandbox(&data, port, "").await;
        let server = serve(&sandbox);
        break_one(&sandbox).await;
        eventually("all are raised, and tried", async || all_pending(&sandbox).await).await;
        let error = listed(&sandbox).await[0]["error"].to_string();
        assert!(error.contains("cannot connect"), "{error}");
        server.kill9();
        let raised = listed(&sandbox).await;
        let said = server.stderr() + &error;
        assert!(!said.contains(HIDDEN) && !said.contains(SECRET), "{said}");

        let receiver = Receiver::start_on(port).await;
        let _server = serve(&sandbox);
        eventually("all are received", async || receiver.kinds().len() == 2).await;
        eventually("the deliveries are recorded", async || all_delivered(&sandbox).await).await;
        let ids = |mut ids: Vec<String>| {
            ids.sort();
            ids.dedup();
            ids
        };
        let posted =
            receiver.posts().iter().map(|post| post.headers["webhook-id"].clone()).collect();
        let raised = raised.iter().map(|alert| alert["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids(posted), ids(raised), "no other alerts than before");
    }
}

#[tokio::test]
async fn an_unresponsive_receiver_blocks_nothing() {
    let data = Data::sqlite().with_accounts(30).await;
    let receiver = Receiver::start().await;
    receiver.stop_responding();
    let sandbox = sandbox(&data, receiver.port, "").await;
    let server = serve(&sandbox);
    break_one(&sandbox).await;
    eventually("it holds a request", async || !receiver.posts().is_empty()).await;
    let id = sandbox.submit("RAISE").await;
    sandbox.completed(&id).await;
    assert!(listed(&sandbox).await.iter().all(|alert| alert["delivery"] == "pending"));
    // It does not delay a shutdown either.
    server.term();
    let ended = server.wait().await.ok();
    assert!(ended.stderr.contains("stopped"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let data = Data::sqlite().with_accounts(3).await;
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let to = format!("307 Temporary Redirect\r\nlocation: http://127.0.0.1:{}/", elsewhere.port);
    receiver.respond_with(to.leak());
    let sandbox = sandbox(&data, receiver.port, "").await;
    let _server = serve(&sandbox);
    break_one(&sandbox).await;
    eventually("it is refused", async || all_pending(&sandbox).await).await;
    let error = listed(&sandbox).await[0]["error"].to_string();
    assert!(error.contains("307") && error.contains("alerts.webhook"), "{error}");
    receiver.respond_with("200 OK");
    eventually("they are received", async || all_delivered(&sandbox).await).await;
    assert!(elsewhere.posts().is_empty());
}
