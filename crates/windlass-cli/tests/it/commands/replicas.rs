//! How `windlass check` and `windlass migrate` treat replicas.

use crate::common::{CliSandbox, config, refused};
use windlass_testkit::{Options, PostgresServer, free_port};

#[tokio::test]
async fn replicas_are_checked_and_not_migrated() {
    let options = Options { fsync: false, ..Options::default() };
    let primary = PostgresServer::start(options);
    let app = primary.database().await;
    let replica = primary.replica();
    let copy = replica.existing(app.name());
    let nowhere = format!("postgres://u:secret@127.0.0.1:{}/app", free_port());
    let lines = format!("[connections.app]\nreplicas = [\"{}\", \"{nowhere}\"]", copy.url());
    let text = config("sqlite:windlass.db", app.url(), "").replace("[connections.app]", &lines);
    let sandbox = CliSandbox::with(&text);

    // The replica is read-only, so this would fail on it.
    sandbox.run("migrate").await.ok();
    let output = sandbox.run("check").await.ok();
    assert!(output.stdout.contains(&format!("replica {} lags", copy.url())), "{}", output.stdout);
    assert!(output.stdout.contains("warning: connections.app.replicas"), "{}", output.stdout);
    assert!(output.stdout.contains("it would not be used"), "{}", output.stdout);
    assert!(!output.stdout.contains("secret"), "{}", output.stdout);
    let json = sandbox.json("check").await;
    assert_eq!(json["ok"], true, "{json:#}");
    assert!(json["replicas"][0]["lagMs"].is_u64(), "{json:#}");
    assert!(json["replicas"][1]["error"].is_string(), "{json:#}");

    let sandbox = CliSandbox::with(&text.replace("replicas =", "max_lag = \"0s\"\nreplicas ="));
    refused(&sandbox.run("check").await, &["connections.app.max_lag", "at least 1s"]);
}
