//! Control characters from external input do not reach a terminal and cannot forge a log line.

use crate::common::{CliSandbox, Data, parse, said, text};
use crate::steps::fixture::{by_command, sandbox};
use windlass_testkit::Output;

/// Escape sequences, carriage returns, bells, C1 controls, bidirectional overrides, and a line that looks like another
/// log record.
const CONTROLS: &str = "\u{1b}[31m\u{1b}]0;title\u{7}\r\u{8}\u{7f}\u{9b}2J\u{85}\u{202a}\u{202b}\
                        \u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\
                        \u{61c}\u{2028}\u{2029}\nFORGED  LINE";

#[track_caller]
fn is_clean(output: &Output) {
    let said = said(output);
    let dangerous = |c: &char| (c.is_control() && *c != '\n') || is_format(*c);
    let found: Vec<char> = said.chars().filter(dangerous).collect();
    assert!(found.is_empty(), "{found:?} in {said:?}");
    let forged = said.lines().find(|line| line.starts_with("FORGED"));
    assert!(forged.is_none(), "a forged line: {said}");
}

fn is_format(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A table whose keys contain the characters, and a program whose results contain them.
async fn with_controls(command: &str) -> (Data, CliSandbox) {
    let data = Data::sqlite();
    let key = CONTROLS.replace('\'', "''");
    data.run(&format!(
        "CREATE TABLE accounts (id text PRIMARY KEY NOT NULL, owner text, version bigint NOT NULL);
         INSERT INTO accounts VALUES ('key {key}', 'owner {key}', 1), ('second {key}', NULL, 1)"
    ))
    .await;
    let retry = "retry = { attempts = 2, backoff = \"10ms\" }\n";
    let named = by_command(command, retry);
    let sandbox = sandbox(&data, &format!("{named}description = {}\n", json(CONTROLS)));
    sandbox.write("controls.json", &json(CONTROLS));
    (data, sandbox.env("USER", &format!("user {CONTROLS}")))
}

fn json(text: &str) -> String {
    // JSON does not escape some characters that TOML refuses.
    let escaped = text.chars().map(|c| match c {
        ' '..='!' | '#'..='[' | ']'..='~' => c.to_string(),
        other => format!("\\u{:04x}", u32::from(other)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[tokio::test]
async fn listings_and_logs_contain_no_control_characters() {
    for program in ["python3 controls.py", "python3 controls.py die"] {
        let (_data, sandbox) = with_controls(program).await;
        let param = format!("note=param {CONTROLS}");
        let submitted = sandbox.run_words(&["submit", "RAISE", "--param", &param]).await.ok();
        is_clean(&submitted);
        let id = submitted.stdout.trim().to_owned();
        let worked = sandbox.run(&format!("worker --job {id} -vv")).await;
        is_clean(&worked);
        assert!(worked.stderr.contains("said \\x1b[31m"), "{}", worked.stderr);
        let listed = sandbox.json("dead list").await;
        let letters = listed.as_array().unwrap();
        assert_eq!(letters.len(), 2, "{listed:#}");
        assert!(text(&letters[0]["key"]).ends_with(CONTROLS), "JSON has the key itself: {listed}");
        let letter = text(&letters[0]["id"]);
        for look in [
            "jobs",
            "job",
            "chunks",
            "dead list",
            "dead show",
            "workers",
            "audit",
            "check",
            "run RAISE --dry-run",
            "dead export",
        ] {
            let words = match look {
                "job" | "chunks" | "audit" => format!("{look} {id}"),
                "dead show" => format!("{look} {letter}"),
                _ => look.to_owned(),
            };
            is_clean(&sandbox.run(&words).await);
            if !["audit", "dead export"].contains(&look) {
                let output = sandbox.run(&format!("{words} --json")).await;
                is_clean(&output);
                // A program that dies refuses the dry run with a message.
                if output.code == Some(0) || !program.ends_with("die") {
                    parse(&output);
                }
            }
        }
        let shown = sandbox.run(&format!("dead show {letter}")).await.ok().stdout;
        assert!(shown.contains("\\x1b[31m") && shown.contains("\\u{202e}"), "{shown}");
    }
}

#[tokio::test]
async fn the_error_of_a_job_contains_no_control_characters() {
    let (_data, sandbox) = with_controls("python3 controls.py hopeless").await;
    let id = sandbox.submit("RAISE").await;
    for command in ["worker --job", "job", "jobs --limit 5 --before", "watch"] {
        is_clean(&sandbox.run(&format!("{command} {id}")).await);
    }
    for command in ["jobs", "check", "run RAISE"] {
        is_clean(&sandbox.run(command).await);
    }
    let shown = sandbox.run(&format!("job {id}")).await.stdout;
    assert!(shown.contains("hopeless \\x1b[31m"), "{shown}");
    // Arguments that the command line repeats.
    let words = ["run", CONTROLS];
    is_clean(&sandbox.run_words(&words).await);
    is_clean(&sandbox.run_words(&["--config", &format!("no{CONTROLS}"), "jobs"]).await);
}
