//! Secret headers are sent, and appear neither in the store nor in the log nor in any output.

use crate::common::{CliSandbox, Data, parse, said, text};
use crate::steps::fixture::{by_service, sandbox, with_accounts};
use crate::steps::server::Server;
use std::path::Path;

pub(crate) const SECRET: &str = "hush-7f3a91c2";
const HEADERS: &str = "step.headers = { Authorization = \"Bearer ${ENRICH_TOKEN}\" }\n\
                       retry = { attempts = 2, backoff = \"10ms\" }\n";

/// Asserts that no file of a folder contains the secret, neither a database nor the output of a command.
pub(crate) fn is_nowhere_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            is_nowhere_in(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "the secret is in {}", path.display());
    }
}

/// Runs all commands that show a job or a job type.
async fn look_everywhere(sandbox: &CliSandbox, id: &str) {
    let looks = ["check", "check --json", "jobs --json", "jobs", "dead list --json"];
    let of_job = ["job", "job --json", "chunks", "chunks --json", "audit"];
    let of_job = of_job.iter().map(|look| match look.split_once(' ') {
        Some((command, flag)) => format!("{command} {id} {flag}"),
        None => format!("{look} {id}"),
    });
    for look in looks.iter().map(|look| (*look).to_owned()).chain(of_job) {
        let output = sandbox.run(&format!("{look} -vv")).await;
        assert!(!said(&output).contains(SECRET), "{look}: {output:?}");
    }
}

#[tokio::test]
async fn a_secret_header_is_sent_and_stored_nowhere() {
    let server = Server::start().await;
    let data = Data::sqlite().with_accounts(20).await;
    let sandbox = sandbox(&data, &by_service(&server.url("reject=400:7"), HEADERS));
    // Everything is logged, including the libraries.
    let sandbox = sandbox.env("ENRICH_TOKEN", SECRET).env("WINDLASS_LOG", "trace");
    let output = sandbox.run("run RAISE -vv --json").await.with_dead_letters();
    for request in server.requests() {
        assert_eq!(request["headers"]["authorization"], format!("Bearer {SECRET}"));
    }
    look_everywhere(&sandbox, &text(&parse(&output)["id"])).await;
    // The folder has the store and the output of all commands.
    is_nowhere_in(&sandbox.path("."));
    is_nowhere_in(data.folder());
}

#[tokio::test]
async fn failures_do_not_reveal_the_secret() {
    let server = Server::start().await;
    for behaviour in ["always=401", "redirect=307"] {
        let jobs = by_service(&server.url(behaviour), HEADERS);
        let (data, sandbox) = with_accounts(5, &jobs).await;
        let sandbox = sandbox.env("ENRICH_TOKEN", SECRET);
        let id = sandbox.submit("RAISE -vv").await;
        let worked = sandbox.run(&format!("worker --job {id} -vv")).await;
        assert_eq!(worked.code, Some(4), "{worked:?}");
        look_everywhere(&sandbox, &id).await;
        is_nowhere_in(&sandbox.path("."));
        is_nowhere_in(data.folder());
    }
}

#[tokio::test]
async fn the_secret_comes_from_the_environment_of_the_worker() {
    let server = Server::start().await;
    let (data, sandbox) = with_accounts(5, &by_service(&server.url(""), HEADERS)).await;
    let sandbox = sandbox.env("ENRICH_TOKEN", "of-the-submitter");
    let id = sandbox.submit("RAISE").await;
    let sandbox = sandbox.env("ENRICH_TOKEN", "of-the-worker");
    sandbox.run(&format!("worker --job {id}")).await.ok();
    data.raised_once(5).await;
    for request in server.batches() {
        assert_eq!(request["headers"]["authorization"], "Bearer of-the-worker");
    }
}

#[tokio::test]
async fn an_unset_variable_is_named() {
    let server = Server::start().await;
    let (_data, sandbox) = with_accounts(5, &by_service(&server.url(""), HEADERS)).await;
    crate::common::refused(&sandbox.run("check").await, &["ENRICH_TOKEN", "windlass.toml"]);
}

/// Asserts that no four consecutive characters of the secret are in a text.
fn has_no_piece(text: &str) {
    for piece in SECRET.as_bytes().windows(4) {
        let piece = std::str::from_utf8(piece).unwrap();
        assert!(!text.contains(piece), "`{piece}` of the secret is in: {text}");
    }
}

#[tokio::test]
async fn an_answer_cut_within_the_secret_shows_no_part_of_it() {
    let server = Server::start().await;
    // The message contains the first 200 bytes of the answer. The cut goes through each position of the secret.
    for before in [178, 183, 186, 189, 191] {
        let jobs = by_service(&server.url(&format!("repeat=401:{before}")), HEADERS);
        let (_data, sandbox) = with_accounts(5, &jobs).await;
        let sandbox = sandbox.env("ENRICH_TOKEN", SECRET);
        let id = sandbox.submit("RAISE").await;
        let worked = sandbox.run(&format!("worker --job {id} -vv")).await;
        assert_eq!(worked.code, Some(4), "{worked:?}");
        has_no_piece(&said(&worked));
        let error = text(&sandbox.job(&id).await["error"]);
        assert!(error.contains("xxx …"), "{error}");
        has_no_piece(&error);
    }
    // A malformed answer.
    let jobs = by_service(&server.url("repeat=200:183"), HEADERS);
    let (_data, sandbox) = with_accounts(5, &jobs).await;
    let output = sandbox.env("ENRICH_TOKEN", SECRET).run("run RAISE").await;
    has_no_piece(&said(&output));
}

#[tokio::test]
async fn item_errors_that_contain_the_secret_are_stored_redacted() {
    let server = Server::start().await;
    let (data, sandbox) = with_accounts(5, &by_service(&server.url("blame=3"), HEADERS)).await;
    let sandbox = sandbox.env("ENRICH_TOKEN", SECRET);
    let output = sandbox.run("run RAISE --json").await.with_dead_letters();
    assert_eq!(parse(&output)["items"]["dead"], 1, "{output:?}");
    look_everywhere(&sandbox, &text(&parse(&output)["id"])).await;
    is_nowhere_in(&sandbox.path("."));
    is_nowhere_in(data.folder());
}
