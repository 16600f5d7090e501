//! The webhook signature, verified with the example in docs/alerts.md.

use crate::alerts::fixture::{SECRET, break_one, sandbox, serve};
use crate::alerts::webhook_receiver::{Posted, Receiver};
use crate::common::{Data, eventually};
use serde_json::json;
use windlass_testkit::Windlass;

const PAGE: &str = include_str!("../../../../../docs/alerts.md");

/// The result of the Python example in the documentation.
async fn is_ours(secret: &str, posted: &Posted) -> String {
    let example = PAGE.split("<!-- test -->\n```python\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let request = json!({"headers": posted.headers, "body": posted.body, "secret": secret});
    std::fs::write(folder.path().join("request.json"), request.to_string()).unwrap();
    let call = "import json\nr = json.load(open('request.json'))\n\
                print(is_ours(r['secret'], r['headers'], r['body'].encode()))\n";
    std::fs::write(folder.path().join("verify.py"), format!("{example}\n{call}")).unwrap();
    let python = Windlass::new(folder.path()).binary("python3");
    python.run(["verify.py"]).await.ok().stdout.trim().to_owned()
}

#[tokio::test]
async fn the_signature_is_valid_only_for_the_posted_request() {
    let data = Data::sqlite().with_accounts(3).await;
    let receiver = Receiver::start().await;
    let sandbox = sandbox(&data, receiver.port, "").await;
    // Two secrets, as during a rotation.
    let both = format!("secret = [\"another-secret-of-32-bytes-or-so\", \"{SECRET}\"]");
    let text = sandbox.read("windlass.toml").replace(&format!("secret = \"{SECRET}\""), &both);
    sandbox.write("windlass.toml", &text);
    let _server = serve(&sandbox);
    break_one(&sandbox).await;
    eventually("something is posted", async || !receiver.posts().is_empty()).await;
    let posted = receiver.posts().remove(0);
    assert_eq!(posted.headers["content-type"], "application/json");
    assert_eq!(posted.json()["id"], posted.headers["webhook-id"].as_str());
    assert_eq!(is_ours(SECRET, &posted).await, "True");
    assert_eq!(is_ours("another-secret-of-32-bytes-or-so", &posted).await, "True");
    assert_eq!(is_ours("a secret of somebody else's", &posted).await, "False");
    let body = posted.body.replace("BREAK", "BROKE");
    assert_eq!(is_ours(SECRET, &Posted { body, ..posted.clone() }).await, "False");
    let mut old = posted;
    old.headers.insert("webhook-timestamp".to_owned(), "1700000000".to_owned());
    assert_eq!(is_ours(SECRET, &old).await, "False");
}
