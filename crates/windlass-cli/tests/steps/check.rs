//! `windlass check` asks programs and services an empty batch, and says what came of it.

use crate::common::{Place, parse, refused, text};
use crate::server::{Server, url};
use crate::world::{by_command, by_service, notes, nothing_runs_soon, with_accounts};
use windlass_testkit::free_port;

/// The job type is refused with a problem of this field, which has this word.
async fn names(place: &Place, field: &str, word: &str) {
    refused(&place.run("check").await, &["windlass.toml", "line 7", field, word]);
    let output = place.run("check --json").await;
    assert_eq!(output.code, Some(2), "{output:?}");
    let json = parse(&output);
    assert_eq!(json["ok"], false, "{json:#}");
    assert_eq!(json["problems"][0]["field"], format!("jobs.RAISE.{field}"), "{json:#}");
    assert!(text(&json["problems"][0]["detail"]).contains(word), "{json:#}");
    nothing_runs_soon(place).await;
}

#[tokio::test]
async fn a_program_that_answers_is_right() {
    let (data, place) = with_accounts(5, &by_command("python3 raise.py", "")).await;
    let output = place.run("check").await.ok();
    for part in ["RAISE", "python3 raise.py", "empty batch", "at least once", "no problems found"] {
        assert!(output.stdout.contains(part), "`{part}` is not in:\n{}", output.stdout);
    }
    let batches = notes(&place, "batches.jsonl");
    assert!(!batches.is_empty());
    assert!(batches.iter().all(|batch| batch.contains("\"items\":[]")), "{batches:?}");
    assert_eq!(notes(&place, "ended").len(), notes(&place, "started").len());
    let json = place.json("check").await;
    assert_eq!(json["ok"], true, "{json:#}");
    let command = serde_json::json!(["python3", "raise.py"]);
    assert_eq!(json["jobTypes"][0]["definition"]["step"]["command"], command);
    nothing_runs_soon(&place).await;
    data.untouched().await;
}

#[tokio::test]
async fn a_service_that_answers_is_right() {
    let server = Server::start().await;
    let (data, place) = with_accounts(5, &by_service(&server.url(""), "")).await;
    let output = place.run("check").await.ok();
    for part in ["RAISE", &server.url(""), "empty batch", "at least once", "no problems found"] {
        assert!(output.stdout.contains(part), "`{part}` is not in:\n{}", output.stdout);
    }
    assert!(!server.requests().is_empty());
    assert!(server.batches().is_empty(), "only empty batches were sent");
    data.untouched().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let (_data, place) = with_accounts(5, &by_command("./no-such-program", "")).await;
    names(&place, "step.command", "no-such-program").await;
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_named_with_what_it_said() {
    let (_data, place) = with_accounts(5, &by_command("python3 no-such-script.py", "")).await;
    names(&place, "step.command", "no-such-script.py").await;
}

#[tokio::test]
async fn a_program_that_does_not_answer_is_named() {
    let jobs = by_command("sleep 3600", "step.timeout = \"1s\"\n");
    let (_data, place) = with_accounts(5, &jobs).await;
    names(&place, "step.command", "1s").await;
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named() {
    let (_data, place) = with_accounts(5, &by_service(&url(free_port(), ""), "")).await;
    names(&place, "step.http", "refused").await;
}

#[tokio::test]
async fn a_service_that_refuses_is_named() {
    let server = Server::start().await;
    for status in ["401", "404", "500", "307"] {
        let behaviour = if status == "307" { "redirect" } else { "always" };
        let jobs = by_service(&server.url(&format!("{behaviour}={status}")), "");
        let (_data, place) = with_accounts(5, &jobs).await;
        names(&place, "step.http", status).await;
    }
}

#[tokio::test]
async fn one_that_is_wrong_does_not_hide_the_others() {
    let right = by_command("python3 raise.py", "");
    let wrong = by_command("./no-such-program", "").replace("RAISE", "LOWER");
    let (_data, place) = with_accounts(5, &(right + &wrong)).await;
    let output = place.run("check").await;
    refused(&output, &["RAISE\n", "LOWER", "no-such-program", "1 problem found"]);
}
