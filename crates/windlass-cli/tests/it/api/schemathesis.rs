//! The API against its own document: schemathesis makes requests of all kinds, right and wrong, and
//! compares every response with the document.

use crate::api::openapi::operations;
use crate::api::output::{EMITTER, emit};
use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, text};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// A job that always fails: the column does not exist.
const BREAK: &str = "[jobs.BREAK]\nsource.connection = \"app\"\nsource.table = \"wallets\"\n\
                     step.sql = \"UPDATE wallets SET seen = 1 WHERE {chunk}\"\n\
                     retry = { attempts = 1 }\n";
/// A job whose files can be downloaded.
const EXPORT: &str = "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"wallets\"\n\
                      step.export = { to = \"file:exports/{job_id}/\", format = \"jsonl\" }\n";
const SCHEDULE: &str = "schedule = { cron = \"0 3 1 1 *\", missed = \"skip\" }\n";
const SERVER: &str = "[server]\nrequests_per_second = 1000000\n";

async fn every_response_matches_the_openapi_document(data: Data) {
    let data = data.with_accounts(30).await;
    let jobs = [&take(SCHEDULE), &emit(), BREAK, EXPORT, &auth(), SERVER].concat();
    let sandbox = CliSandbox::on(&data, &jobs);
    sandbox.write("emit.py", EMITTER);
    sandbox.write("schemathesis.toml", include_str!("schemathesis/schemathesis.toml"));
    sandbox.write("hooks.py", include_str!("schemathesis/hooks.py"));
    let known = known(&sandbox).await;
    let mut server = TestServer::start(sandbox).await;
    server.token(&token("eve", "chief"));
    let tried = Command::new(program())
        .args(["run", &format!("{}/api/v1/openapi.json", server.url), "--checks", "all"])
        .current_dir(server.sandbox.path(""))
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", server.sandbox.path(""))
        .env("TOKEN", token("eve", "chief"))
        .env("KNOWN", known.to_string())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&tried.stdout) + String::from_utf8_lossy(&tried.stderr);
    assert!(tried.status.success(), "{said}");
    // Schemathesis cannot guess the name of a file.
    let manifest = format!("/api/v1/jobs/{}/files/manifest.json", text(&known["exported"]));
    let manifest = server.get(&manifest).await;
    assert_eq!((manifest.status, manifest.header("content-type")), (200, Some("application/json")));
    let never = never_served(&server).await;
    assert!(never.is_empty(), "no request to these operations succeeded: {never:?}\n{said}");
}

/// Jobs in every status and dead letters, by the actions that they allow.
async fn known(sandbox: &CliSandbox) -> Json {
    let (taken, emitted) = (sandbox.submit("TAKE").await, sandbox.submit("EMIT").await);
    let exported = sandbox.submit("EXPORT").await;
    let failed = sandbox.submit("BREAK").await;
    for id in [&taken, &emitted, &exported] {
        sandbox.run(&format!("worker --job {id} --allow-dead-letters")).await.ok();
    }
    assert_eq!(sandbox.run(&format!("worker --job {failed}")).await.code, Some(1));
    let (queued, paused) = (sandbox.submit("TAKE").await, sandbox.submit("TAKE").await);
    let more = [sandbox.submit("TAKE").await, sandbox.submit("TAKE").await];
    sandbox.run(&format!("pause {paused}")).await.ok();
    let letters = sandbox.json("dead list").await;
    let letters: Vec<_> =
        letters.as_array().unwrap().iter().map(|letter| text(&letter["id"])).collect();
    assert!(!letters.is_empty());
    let submitted = sandbox.submit("TAKE").await;
    json!({
        "types": ["TAKE", "EMIT"],
        "letters": letters,
        "jobs": [taken, emitted, failed, queued],
        "exported": exported,
        "cancel": [submitted, taken],
        "pause": [queued, more[0], more[1], taken],
        "resume": [paused, queued, taken],
        "retry": [failed, taken],
    })
}

/// The operations without a successful request, according to the log.
async fn never_served(server: &TestServer) -> BTreeSet<(String, String)> {
    let document = server.get("/api/v1/openapi.json").await.is(200);
    let log = server.process.stderr();
    let good: Vec<_> = log.lines().filter(|line| line.contains(" status=2")).collect();
    let was_served = |method: &str, route: &str| {
        good.iter().any(|line| {
            let path = line.split("path=\"").nth(1).and_then(|rest| rest.split('"').next());
            line.contains(&format!("method={method} "))
                && path.is_some_and(|path| fits(path, route))
        })
    };
    let all = operations(&document).into_iter().map(|(path, method, _)| (method, path));
    let never = all.filter(|(method, path)| !was_served(method, path));
    // Its first event arrives only when a job changes, so schemathesis does not call it.
    never.filter(|(_, path)| path != "/api/v1/events").collect()
}

fn fits(path: &str, route: &str) -> bool {
    let (path, route) = (path.split('/'), route.split('/'));
    path.clone().count() == route.clone().count()
        && path.zip(route).all(|(part, name)| name.starts_with('{') || part == name)
}

/// The program that `cargo xtask test` installs in the target folder.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("schemathesis/bin/schemathesis");
    assert!(
        program.exists(),
        "there is no {}: `cargo xtask test` installs it, or reports why it cannot",
        program.display()
    );
    program
}

on_both!(every_response_matches_the_openapi_document);
