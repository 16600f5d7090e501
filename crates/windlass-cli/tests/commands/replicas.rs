//! What `windlass check` and `windlass migrate` make of replicas.

use crate::common::{Place, config, refused};
use windlass_testkit::{Options, PostgresServer, free_port};

#[tokio::test]
async fn replicas_are_asked_and_left_alone() {
    let options = Options { fsync: false, ..Options::default() };
    let primary = PostgresServer::start(options);
    let app = primary.database().await;
    let replica = primary.replica();
    let copy = replica.existing(app.name());
    let nowhere = format!("postgres://u:secret@127.0.0.1:{}/app", free_port());
    let lines = format!("[connections.app]\nreplicas = [\"{}\", \"{nowhere}\"]", copy.url());
    let text = config("sqlite:windlass.db", app.url(), "").replace("[connections.app]", &lines);
    let place = Place::with(&text);

    // The replica cannot be written, so this would fail on it.
    place.run("migrate").await.ok();
    let output = place.run("check").await.ok();
    assert!(output.stdout.contains(&format!("replica {} lags", copy.url())), "{}", output.stdout);
    assert!(output.stdout.contains("warning: connections.app.replicas"), "{}", output.stdout);
    assert!(output.stdout.contains("it would not be used"), "{}", output.stdout);
    assert!(!output.stdout.contains("secret"), "{}", output.stdout);
    let json = place.json("check").await;
    assert_eq!(json["ok"], true, "{json:#}");
    assert!(json["replicas"][0]["lagMs"].is_u64(), "{json:#}");
    assert!(json["replicas"][1]["error"].is_string(), "{json:#}");

    let place = Place::with(&text.replace("replicas =", "max_lag = \"0s\"\nreplicas ="));
    refused(&place.run("check").await, &["connections.app.max_lag", "at least 1s"]);
}
