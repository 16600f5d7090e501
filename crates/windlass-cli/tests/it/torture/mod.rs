//! Torture: real processes on real databases, with jobs of every kind, operators, a bystander that writes the same
//! records, and faults drawn from a seed. Afterwards a checker judges the history from the data itself.
//!
//! `cargo xtask torture --minutes M --seed S --on DATABASE` runs the same for longer, by these variables. The seed
//! decides what is done; when it happens also depends on the operating system, so a failure may need several runs.

mod bystander;
mod checker;
mod checker_tests;
mod cluster;
mod collect;
mod disk;
mod history;
mod job_types;
mod operators;
mod processes;
mod round;
mod summary;

use cluster::Kind;
use std::time::{Duration, Instant};
use summary::Summary;

/// Seconds of a longer run.
const SECONDS: &str = "WINDLASS_TORTURE_SECONDS";
/// The seed of its first round. Each round takes the next one.
const SEED: &str = "WINDLASS_TORTURE_SEED";

/// How long a round of a longer run has faults.
const LONG_ROUND: Duration = Duration::from_secs(25);

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_keeps_its_promises_under_torture() {
    torture(Kind::Postgres, 2, Duration::from_secs(14)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mariadb_keeps_its_promises_under_torture() {
    torture(Kind::Mariadb, 1, Duration::from_secs(14)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_its_promises_under_torture() {
    torture(Kind::Sqlite, 1, Duration::from_secs(14)).await;
}

/// Runs this many rounds with faults for this long, or rounds until the time of a longer run is over.
async fn torture(kind: Kind, rounds: u64, faults_for: Duration) {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let (time, first) =
        (number(SECONDS).map(Duration::from_secs), number(SEED).unwrap_or(20_261_118));
    let faults_for = if time.is_some() { LONG_ROUND } else { faults_for };
    let started = Instant::now();
    let mut total = Summary::default();
    let mut seed = first;
    let goes_on = |seed: u64| match time {
        Some(time) => started.elapsed() < time,
        None => seed < first + rounds,
    };
    while goes_on(seed) {
        let round = round::run(kind, seed, faults_for).await;
        eprintln!("torture: {kind:?}, seed {seed}: {round}");
        round.violations.iter().for_each(|violation| eprintln!("  {violation}"));
        total.add(round);
        seed += 1;
    }
    println!("torture: {kind:?}, seeds {first} to {}, {:?}: {total}", seed - 1, started.elapsed());
    assert!(total.violations.is_empty(), "{:#?}", total.violations);
}
