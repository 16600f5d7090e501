//! The environment of a command has the variables in `step.env` and a few that programs need, and no others.

use crate::common::{CliSandbox, refused};
use crate::steps::fixture::{by_command, notes, with_accounts};
use std::collections::BTreeSet;

/// Variables of a server that a program must not get unless they are named.
const SECRETS: [(&str, &str); 8] = [
    ("WINDLASS_TOKEN_KEYS", "2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
    ("WINDLASS_TOKEN", "hush-token"),
    ("WINDLASS_SECRET", "hush-that-signs-tokens-hush-that-signs"),
    ("DATABASE_URL", "postgres://u:hush@h/app"),
    ("ALERT_SECRET", "hush-webhook"),
    ("AWS_SECRET_ACCESS_KEY", "hush-aws"),
    ("PATHS", "hush-a-name-that-begins-as-an-allowed-one"),
    ("ENRICH_URL_2", "hush-a-name-that-begins-as-a-named-one"),
];

async fn started_with(more: &str) -> (crate::common::Data, CliSandbox) {
    let jobs = by_command("sh environment.sh", more);
    let (data, mut sandbox) = with_accounts(5, &jobs).await;
    for (name, value) in SECRETS {
        sandbox = sandbox.env(name, value);
    }
    let sandbox = sandbox.env("LANG", "C.UTF-8").env("TZ", "Asia/Tokyo").env("HOME", "/tmp");
    (data, sandbox.env("ENRICH_URL", "https://enrich.example").env("EMPTY", ""))
}

fn names(line: &str) -> BTreeSet<String> {
    let pairs = line.split_terminator('\t');
    pairs.map(|pair| pair.split('=').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_command_has_only_the_named_variables() {
    let (data, sandbox) =
        started_with("step.env = [\"ENRICH_URL\", \"EMPTY\", \"NOT_SET\"]\n").await;
    // All commands that start a program.
    for command in ["check", "run RAISE --dry-run", "run RAISE"] {
        sandbox.run(command).await.ok();
    }
    let id = sandbox.submit("RAISE").await;
    sandbox.run(&format!("worker --job {id}")).await.ok();
    assert_eq!(data.number("SELECT count(*) FROM accounts WHERE version = 3").await, 5);
    let started = notes(&sandbox, "environment");
    assert!(started.len() >= 4, "{started:?}");
    let expected = ["EMPTY", "ENRICH_URL", "HOME", "LANG", "PATH", "TZ"].map(str::to_owned);
    for line in started {
        assert_eq!(names(&line), BTreeSet::from(expected.clone()), "{line}");
        assert!(!line.contains("hush"), "{line}");
        assert!(line.contains("ENRICH_URL=https://enrich.example"), "{line}");
        assert!(line.contains("TZ=Asia/Tokyo") && line.contains("LANG=C.UTF-8"), "{line}");
    }
}

#[tokio::test]
async fn a_secret_is_passed_only_to_steps_that_name_it() {
    let (_data, sandbox) = started_with("step.env = [\"DATABASE_URL\"]\n").await;
    sandbox.run("run RAISE").await.ok();
    let line = notes(&sandbox, "environment").concat();
    assert!(line.contains("DATABASE_URL=postgres://u:hush@h/app"), "{line}");
    assert!(!line.contains("hush-") && !line.contains("ENRICH_URL"), "{line}");
}

#[tokio::test]
async fn without_a_list_a_command_has_the_default_variables() {
    let (_data, sandbox) = started_with("").await;
    sandbox.run("run RAISE").await.ok();
    for line in notes(&sandbox, "environment") {
        let expected = ["HOME", "LANG", "PATH", "TZ"].map(str::to_owned);
        assert_eq!(names(&line), BTreeSet::from(expected), "{line}");
    }
}

#[tokio::test]
async fn invalid_variable_names_are_refused() {
    for name in ["A=b", "", "A B", "1A", "${HOME}", "A-B", "*"] {
        // `${…}` would be replaced before the file is parsed.
        let list = serde_json::to_string(&[name.replace("${", "{")]).unwrap();
        let (_data, sandbox) = started_with(&format!("step.env = {list}\n")).await;
        refused(&sandbox.run("check").await, &["step.env", "the name of a variable"]);
    }
    for name in ["WINDLASS_TOKEN_KEYS", "WINDLASS_TOKEN"] {
        let (_data, sandbox) = started_with(&format!("step.env = [\"{name}\"]\n")).await;
        refused(&sandbox.run("check").await, &["step.env", name]);
    }
}
