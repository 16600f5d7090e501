//! A program that fails on one item is restarted, and the batch is halved until the item is alone and becomes a dead
//! letter. The other items are processed.

use crate::common::{parse, text};
use crate::steps::fixture::{
    TWO_TRIES, batches, by_command, items, keys, letters, notes, nothing_runs_soon, raised_but,
    with_accounts,
};
use serde_json::Value as Json;

const ROWS: i64 = 20;

/// Runs a program that fails in this way on account 13. The error must contain one of the words. Returns the
/// letter.
async fn one_is_poison(way: &str, words: &[&str]) -> Json {
    let command = format!("python3 poison.py {way}=13");
    let timeout = if way == "hangs" { "5s" } else { "60s" };
    let more = format!("step.timeout = \"{timeout}\"\n{TWO_TRIES}");
    let (data, sandbox) = with_accounts(ROWS, &by_command(&command, &more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    assert_eq!(job["status"], "COMPLETED", "{job:#}");
    assert_eq!(job["items"]["processed"], ROWS - 1, "{job:#}");
    assert_eq!(job["items"]["dead"], 1, "{job:#}");
    raised_but(&data, ROWS, &[13]).await;

    let id = text(&job["id"]);
    let letters = letters(&sandbox, &id).await;
    assert_eq!(keys(&letters), [13]);
    let letter = letters[0].clone();
    assert_eq!(letter["attempts"], 2, "{letter:#}");
    assert_eq!(letter["record"]["owner"], "owner 13");
    let error = text(&letter["error"]);
    assert!(words.iter().any(|word| error.contains(word)), "none of {words:?} is in: {error}");
    let context = letter["context"].to_string();
    assert!(context.contains("poison"), "the end of standard error is missing: {context}");
    assert!(context.len() < 100_000, "the context is {} long", context.len());

    // 20, 10, 5, ... down to the single item, and then as many tries as `retry` allows.
    let sent = batches(&sandbox);
    assert_eq!(items(&sent[0]).len(), ROWS as usize);
    let alone = sent.iter().filter(|batch| items(batch).len() == 1 && items(batch)[0]["key"] == 13);
    let alone: Vec<i64> = alone.map(|batch| items(batch)[0]["attempt"].as_i64().unwrap()).collect();
    assert_eq!(alone, [1, 2], "the tries of the single item");
    assert!(notes(&sandbox, "started").len() > 4, "each failure starts a new program");
    nothing_runs_soon(&sandbox).await;
    sandbox.prove(&id).await;
    letter
}

/// The answers for the other items of the batch are valid, so they count, and nothing is sent again.
#[tokio::test]
async fn a_program_that_misspells_a_field_of_one_item() {
    let (data, sandbox) =
        with_accounts(ROWS, &by_command("python3 poison.py misspelt=13", TWO_TRIES)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    raised_but(&data, ROWS, &[13]).await;
    let letters = letters(&sandbox, &text(&job["id"])).await;
    assert_eq!(keys(&letters), [13]);
    assert!(text(&letters[0]["error"]).contains("`updates`"), "{:#}", letters[0]);
    assert_eq!(batches(&sandbox).len(), 1);
}

/// The timeout is per batch of any size, so a program may take most of it for one item.
#[tokio::test]
async fn an_item_alone_has_as_much_time_as_a_batch() {
    let more = "step.timeout = \"20s\"\nretry.attempts = 1\n";
    let (data, sandbox) =
        with_accounts(8, &by_command("python3 poison.py exits=3 slow=1", more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    assert_eq!(keys(&letters(&sandbox, &text(&job["id"])).await), [3], "{job:#}");
    raised_but(&data, 8, &[3]).await;
}

/// Tests [`one_is_poison`]: the name of each test, the way to fail, and the words.
macro_rules! one_is_poison {
    ($($name:ident: $way:literal, $words:expr;)+) => {
        $(#[tokio::test]
        async fn $name() {
            one_is_poison($way, &$words).await;
        })+
    };
}

one_is_poison! {
    a_program_that_exits: "exits", ["exit"];
    a_program_that_is_killed: "killed", ["signal", "killed"];
    a_program_that_hangs: "hangs", ["did not respond within"];
    a_program_that_prints_rubbish: "rubbish", ["this is no answer", "JSON"];
    a_program_that_answers_without_results: "resultless", ["results"];
    a_program_that_answers_for_another_key: "wrong", ["-13", "13"];
    a_program_that_answers_for_more_than_it_was_asked: "more", ["-13"];
    a_program_that_answers_twice: "twice", ["twice"];
    a_program_that_leaves_an_item_out: "missing", ["13", "no result"];
    a_program_that_writes_a_hundred_megabytes_to_standard_error: "floods", ["stderr", "16 MB"];
    a_program_that_writes_a_hundred_megabytes_without_a_line_break: "gushes", ["stderr", "16 MB"];
}
