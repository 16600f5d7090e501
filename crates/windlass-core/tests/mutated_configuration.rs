//! Configurations of the examples, changed at random: each is read, or refused with the place of the error.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use windlass_core::Config;

const EXAMPLES: [&str; 6] = [
    include_str!("../../../examples/candidates/windlass.toml"),
    include_str!("../../../examples/handlers/windlass.toml"),
    include_str!("../../../examples/nightly/windlass.toml"),
    include_str!("../../../examples/relationships/windlass.toml"),
    include_str!("../../../examples/timesheets/windlass.toml"),
    include_str!("../../../examples/visits/windlass.toml"),
];

/// Values that a key seldom has.
const VALUES: [&str; 14] = [
    r#""""#,
    r#""☃""#,
    r#""0s""#,
    r#""-1 day""#,
    "-1",
    "0",
    "18446744073709551616",
    "1e999",
    "nan",
    "true",
    "[]",
    "{}",
    "{ a = [ {} ] }",
    r#""${UNSET}""#,
];

const KEYS: [&str; 9] =
    ["source", "step.sql", "chunk.items", "schedule", "load", "url", "x", r#""""#, "="];

/// A change of one line.
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Repeat,
    Value(&'static str),
    Key(&'static str),
    Cut(Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        Just(Change::Remove),
        Just(Change::Repeat),
        select(&VALUES[..]).prop_map(Change::Value),
        select(&KEYS[..]).prop_map(Change::Key),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn changed(example: &str, changes: &[(Index, Change)]) -> String {
    let mut lines: Vec<String> = example.lines().map(str::to_owned).collect();
    for (place, change) in changes {
        let place = place.index(lines.len());
        let line = lines[place].clone();
        let (key, value) = line.split_once('=').unwrap_or((&line, ""));
        match change {
            Change::Remove => drop(lines.remove(place)),
            Change::Repeat => lines.insert(place, line),
            Change::Value(value) => lines[place] = format!("{key}= {value}"),
            Change::Key(key) => lines[place] = format!("{key} ={value}"),
            Change::Cut(end) => {
                let letters = line.chars().count();
                lines[place] = line.chars().take(end.index(letters + 1)).collect();
            }
        }
    }
    lines.join("\n")
}

#[test]
fn the_examples_are_right() {
    for example in EXAMPLES {
        let config = Config::parse(example, |_| Some("sqlite:app.db".to_owned())).unwrap();
        assert!(!config.jobs.is_empty());
    }
}

/// `PROPTEST_CASES` changes the number of cases.
fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(cases.unwrap_or(default))
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_changed_configuration_is_read_or_refused_with_its_place(
        example in select(&EXAMPLES[..]),
        changes in proptest::collection::vec((any::<Index>(), any_change()), 1..4),
    ) {
        let text = changed(example, &changes);
        let known = |name: &str| (name != "UNSET").then(|| "sqlite:app.db".to_owned());
        let problems = match Config::parse(&text, known) {
            Ok(config) => config.problems(),
            Err(problem) => vec![problem],
        };
        for problem in problems {
            prop_assert!(!problem.detail.is_empty());
            let is_in_text = problem.line.is_none_or(|line| line <= text.lines().count());
            prop_assert!(is_in_text, "{:?} of\n{}", problem, text);
            let has_place = problem.line.is_some() || problem.field.is_some();
            prop_assert!(has_place, "{:?} of\n{}", problem, text);
        }
    }
}
