//! Runs the simulation: a fixed set of seeds, a seed twice, and the protocol without some of its clauses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test reports its failure with a panic"
)]

use std::io::Write as _;
use std::process::{Command, Output};

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass-sim")).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn everything_holds_in_a_fixed_set_of_histories() {
    let output = sim(&["--seeds", "50"]);
    let text = text(&output);
    assert!(output.status.success(), "{text}`cargo xtask simulate --seed SEED` prints a history");
    // Not by a macro, whose output the test harness hides: how much was simulated is part of the result.
    let count = text.lines().last().unwrap_or_default();
    writeln!(std::io::stderr(), "simulation: {count}").unwrap();
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in ["3", "12"] {
        let (first, second) = (sim(&["--seed", seed]), sim(&["--seed", seed]));
        let (first, second) = (text(&first), text(&second));
        assert!(first.lines().count() > 100, "{first}");
        let differs = first.lines().zip(second.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

#[test]
fn a_missing_clause_of_the_protocol_is_found() {
    for clause in ["FenceRaisesRow", "CommitsInCommit"] {
        let output = sim(&["--mutants", clause, "--seeds", "100"]);
        assert!(output.status.success(), "{}", text(&output));
    }
}

#[test]
fn an_unknown_clause_is_refused_with_the_known_ones() {
    let output = sim(&["--mutants", "None"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("FenceRaisesRow"), "{}", text(&output));
}
