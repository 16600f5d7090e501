//! The submitter's token is forwarded if the job type asks for it, and encrypted until then.

use crate::common::{CliSandbox, Data, parse, refused, text};
use crate::steps::fixture::{TWO_TRIES, by_service, sandbox};
use crate::steps::secrets::{SECRET, is_nowhere_in};
use crate::steps::server::Server;

const KEY: &str = "2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

async fn forwarding(server: &Server, behaviour: &str) -> (Data, CliSandbox) {
    let data = Data::sqlite().with_accounts(20).await;
    let more = format!("step.forward_token = true\n{TWO_TRIES}");
    let sandbox = sandbox(&data, &by_service(&server.url(behaviour), &more));
    (data, sandbox)
}

#[tokio::test]
async fn the_token_is_sent_with_every_batch_including_those_of_a_redrive() {
    let server = Server::start().await;
    let (data, sandbox) = forwarding(&server, "reject=400:7").await;
    let keys = sandbox.env("WINDLASS_TOKEN_KEYS", KEY);
    let submitter = keys.env("WINDLASS_TOKEN", SECRET);
    let id = submitter.submit("RAISE").await;
    // The worker has the key, and no token.
    let worker = submitter.env("WINDLASS_TOKEN", "");
    worker.run(&format!("worker --job {id}")).await.with_dead_letters();
    let redriven = parse(&worker.run("dead redrive --all --json").await.ok());
    let redrive = text(&redriven[0]["jobId"]);
    worker.run(&format!("worker --job {redrive}")).await.with_dead_letters();
    let batches = server.batches();
    assert!(batches.iter().any(|request| request["batch"]["jobId"] == redrive.as_str()));
    for request in batches {
        assert_eq!(request["headers"]["authorization"], format!("Bearer {SECRET}"));
    }
    is_nowhere_in(&worker.path("."));
    is_nowhere_in(data.folder());
}

#[tokio::test]
async fn run_check_and_dry_runs_send_the_token_too() {
    let server = Server::start().await;
    let (data, sandbox) = forwarding(&server, "").await;
    let sandbox =
        sandbox.env("WINDLASS_TOKEN_KEYS", KEY).env("WINDLASS_TOKEN", &format!("{SECRET}\n"));
    for command in ["check", "run RAISE --dry-run", "run RAISE"] {
        sandbox.run(command).await.ok();
    }
    for request in server.requests() {
        assert_eq!(request["headers"]["authorization"], format!("Bearer {SECRET}"));
    }
    data.raised_once(20).await;
}

#[tokio::test]
async fn the_token_is_not_sent_unless_the_job_type_asks_for_it() {
    let server = Server::start().await;
    let data = Data::sqlite().with_accounts(5).await;
    let sandbox = sandbox(&data, &by_service(&server.url(""), "")).env("WINDLASS_TOKEN", SECRET);
    sandbox.run("run RAISE --dry-run").await.ok();
    sandbox.run("run RAISE").await.ok();
    for request in server.requests() {
        assert!(request["headers"]["authorization"].is_null(), "{request}");
    }
    is_nowhere_in(&sandbox.path("."));
}

#[tokio::test]
async fn a_missing_token_or_key_is_named() {
    let server = Server::start().await;
    let (data, sandbox) = forwarding(&server, "").await;
    refused(&sandbox.run("run RAISE").await, &["WINDLASS_TOKEN", "RAISE"]);
    let sandbox = sandbox.env("WINDLASS_TOKEN", SECRET);
    refused(&sandbox.run("run RAISE").await, &["WINDLASS_TOKEN_KEYS", "openssl"]);
    let sandbox = sandbox.env("WINDLASS_TOKEN_KEYS", "2026:AAAA");
    refused(&sandbox.run("run RAISE").await, &["WINDLASS_TOKEN_KEYS", "32 bytes"]);
    data.untouched().await;
}
