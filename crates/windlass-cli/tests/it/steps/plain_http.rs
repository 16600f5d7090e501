//! Secrets are sent only over https, except to this machine or with `insecure = true`.

use crate::common::refused;
use crate::steps::fixture::{by_service, with_accounts};
use crate::steps::server::Server;

const HEADER: &str = "step.headers = { Authorization = \"Bearer ${ENRICH_TOKEN}\" }\n";
const REMOTE: &str = "http://enrich.example/batch";

#[tokio::test]
async fn a_secret_for_an_endpoint_without_tls_is_refused_by_every_command() {
    for more in [HEADER, "step.forward_token = true\n"] {
        let (data, sandbox) = with_accounts(5, &by_service(REMOTE, more)).await;
        let sandbox = sandbox.env("ENRICH_TOKEN", "hush-7f3a91c2");
        for command in ["check", "run RAISE", "submit RAISE", "worker", "serve", "jobs"] {
            let output = sandbox.run(command).await;
            refused(&output, &["jobs.RAISE.step.http", "https://", "step.insecure = true"]);
        }
        data.untouched().await;
    }
}

#[tokio::test]
async fn this_machine_and_insecure_endpoints_are_allowed() {
    let server = Server::start().await;
    for url in [server.url(""), server.url("").replace("127.0.0.1", "localhost")] {
        let (data, sandbox) = with_accounts(5, &by_service(&url, HEADER)).await;
        sandbox.env("ENRICH_TOKEN", "hush-7f3a91c2").run("run RAISE").await.ok();
        data.raised_once(5).await;
    }
    let insecure = format!("{HEADER}step.insecure = true\n");
    let (_data, sandbox) = with_accounts(5, &by_service(REMOTE, &insecure)).await;
    let sandbox = sandbox.env("ENRICH_TOKEN", "hush-7f3a91c2");
    assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));
    // An endpoint without a secret needs no TLS.
    let (_data, sandbox) = with_accounts(5, &by_service(REMOTE, "")).await;
    assert_eq!(sandbox.json("jobs").await, serde_json::json!([]));
}

#[tokio::test]
async fn webhooks_and_key_sets_without_tls_are_refused() {
    let secret = "secret = \"0123456789abcdef01234567\"\n";
    let roles = "[auth.roles]\na = { may = [\"view\"] }\n";
    for (table, field) in [
        (format!("[alerts]\nwebhook = \"http://hooks.example/w\"\n{secret}"), "alerts.webhook"),
        (format!("[auth]\njwks = \"http://login.example/keys\"\n{roles}"), "auth.jwks"),
    ] {
        let jobs = by_service("https://enrich.example/", "");
        let (_data, sandbox) = with_accounts(5, &format!("{jobs}{table}")).await;
        for command in ["check", "serve", "worker"] {
            refused(&sandbox.run(command).await, &[field, "https://", "insecure = true"]);
        }
    }
}
