//! Handlers that fail three of ten calls: with retries nothing is lost, and the summary shows it.

use crate::common::{parse, text};
use crate::steps::fixture::{batches, by_command, by_service, items, letters, with_accounts};
use crate::steps::server::Server;

const ROWS: i64 = 1000;
const MANY_TRIES: &str = "retry = { attempts = 20, backoff = \"10ms\", max = \"50ms\" }\n";

#[tokio::test]
async fn a_program_that_fails_three_of_ten_tries_loses_nothing() {
    let more = format!("chunk.items = 200\nchunk.commit = 100\n{MANY_TRIES}");
    let (data, sandbox) = with_accounts(ROWS, &by_command("python3 flaky.py 30", &more)).await;
    let output = sandbox.run("run RAISE").await.ok();
    all_succeeded(&output.stdout);
    data.raised_once(ROWS).await;
    let sent = batches(&sandbox);
    let tries = sent.iter().flat_map(items).count();
    assert!(tries > 1300, "only {tries} tries: too few failed");
    let deepest = sent.iter().flat_map(items).map(|item| item["attempt"].as_i64().unwrap()).max();
    assert!(deepest >= Some(4), "{deepest:?}");
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    assert!(letters(&sandbox, &id).await.is_empty());
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn a_service_that_fails_three_of_ten_calls_loses_nothing() {
    let server = Server::start().await;
    let more = format!("chunk.items = 100\nchunk.commit = 10\n{MANY_TRIES}");
    let jobs = by_service(&server.url("chance=30:503"), &more);
    let (data, sandbox) = with_accounts(ROWS, &jobs).await;
    let output = sandbox.run("run RAISE").await.ok();
    all_succeeded(&output.stdout);
    data.raised_once(ROWS).await;
    let answers = server.answers();
    let failed = answers.values().filter(|answer| answer["status"] == 503).count();
    assert!(failed >= 10, "only {failed} of {} calls failed", answers.len());
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    assert!(letters(&sandbox, &id).await.is_empty());
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn dead_letters_lower_the_success_rate() {
    let jobs = by_command("python3 poison.py refuses=3", "");
    let (_data, sandbox) = with_accounts(8, &jobs).await;
    let output = sandbox.run("run RAISE").await.with_dead_letters();
    assert!(output.stdout.contains("success"), "{}", output.stdout);
    assert!(output.stdout.contains("87.50 %"), "{}", output.stdout);
    let job = parse(&sandbox.run("jobs --json").await.ok());
    assert_eq!(job[0]["items"]["dead"], 1);
}

#[track_caller]
fn all_succeeded(summary: &str) {
    for part in ["COMPLETED", "1,000 processed, 0 skipped, 0 dead letters", "success", "100.00 %"] {
        assert!(summary.contains(part), "`{part}` is not in:\n{summary}");
    }
}
