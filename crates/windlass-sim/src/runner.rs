//! Runs many histories, each in a process of its own: nothing of one history reaches the next.

use crate::explained::{EXPLAINED, Explained};
use crate::focus::Focus;
use crate::mutant::Mutant;
use crate::patch;
use clap::ValueEnum as _;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The longest time that a history takes. Longer than any takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The result of some histories.
#[derive(Default)]
struct Results {
    histories: AtomicU64,
    events: AtomicU64,
    failed: AtomicU64,
    /// The lowest seed that failed.
    first_failed: AtomicU64,
    /// What one of them found.
    failure: Mutex<Option<String>>,
}

/// Runs these seeds, prints those that fail, and returns whether all held.
pub(crate) fn run_seeds(first: u64, seeds: u64, focus: Option<Focus>) -> anyhow::Result<bool> {
    let history = History { program: std::env::current_exe()?, mutant: None, focus };
    let results = run(first, seeds, &history)?;
    let failed = results.failed.load(Relaxed);
    println!(
        "{} histories, {} events, {failed} failed",
        results.histories.load(Relaxed),
        results.events.load(Relaxed)
    );
    Ok(failed == 0)
}

/// Runs seeds on every mutant until one fails, and prints the table. Returns whether every mutant was found.
pub(crate) fn run_mutants(
    mutants: &'static [Mutant],
    first: u64,
    seeds: u64,
) -> anyhow::Result<bool> {
    let own = std::env::current_exe()?;
    let patched = match mutants.iter().any(|mutant| !mutant.patches.is_empty()) {
        true => {
            eprintln!("building the code without its clauses");
            patch::build()?
        }
        false => own.clone(),
    };
    println!("| without | clause | found by seed | histories | seconds |\n|---|---|---|---|---|");
    let mut all = true;
    for mutant in mutants {
        let begun = Instant::now();
        let program = if mutant.patches.is_empty() { own.clone() } else { patched.clone() };
        let history = History { program, mutant: Some(mutant), focus: mutant.focus };
        let mut results = run(mutant.seed, 1, &history)?;
        let mut histories = 1;
        if results.failed.load(Relaxed) == 0 {
            results = run(first, seeds, &history)?;
            histories += results.histories.load(Relaxed);
        }
        let found = results.failed.load(Relaxed) > 0;
        let seed = match found {
            true => results.first_failed.load(Relaxed).to_string(),
            false => "none".to_owned(),
        };
        let seconds = begun.elapsed().as_secs();
        println!("| {} | {} | {seed} | {histories} | {seconds} |", mutant.removes, mutant.clause);
        if let Some(failure) = results.failure.lock().as_ref() {
            eprintln!("{failure}");
        }
        all &= found;
    }
    if mutants.len() > 1 {
        print_explained();
    }
    Ok(all)
}

/// Prints the clauses without a mutant.
fn print_explained() {
    println!("\n| not simulated | because | fails without it |\n|---|---|---|");
    for Explained { clause, because, tests } in EXPLAINED {
        println!("| {clause} | {because} | {} |", tests.join(", "));
    }
}

/// Which histories are run.
struct History {
    program: PathBuf,
    mutant: Option<&'static Mutant>,
    focus: Option<Focus>,
}

/// Runs these seeds; those of a mutant until one fails.
fn run(first: u64, seeds: u64, history: &History) -> anyhow::Result<Results> {
    let is_mutant = history.mutant.is_some();
    let results = Results { first_failed: AtomicU64::new(u64::MAX), ..Results::default() };
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let work = || -> anyhow::Result<()> {
        while !stop.load(Relaxed) {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= first + seeds {
                break;
            }
            let outcome = run_one(seed, history)?;
            results.histories.fetch_add(1, Relaxed);
            results.events.fetch_add(outcome.events, Relaxed);
            if let Some(failure) = outcome.failure {
                results.failed.fetch_add(1, Relaxed);
                results.first_failed.fetch_min(seed, Relaxed);
                if !is_mutant {
                    println!("{failure}");
                }
                *results.failure.lock() = Some(failure);
                stop.fetch_or(is_mutant, Relaxed);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(())
    })?;
    Ok(results)
}

struct Outcome {
    events: u64,
    failure: Option<String>,
}

fn run_one(seed: u64, history: &History) -> anyhow::Result<Outcome> {
    let mut command = Command::new(&history.program);
    command.args(["--summary", "--seed"]).arg(seed.to_string());
    if let Some(mutant) = history.mutant {
        command.args(["--mutant", mutant.clause]);
    }
    if let Some(focus) = history.focus.and_then(|focus| focus.to_possible_value()) {
        command.args(["--focus", focus.get_name()]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // The output is short, so the pipes never fill.
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > TIMEOUT {
            child.kill()?;
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let output = child.wait_with_output()?;
    let output = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let line = output.lines().find(|line| line.starts_with("seed ")).unwrap_or_default();
    let events = line.split("; ").find_map(|part| part.split_once(" events"));
    let events = events.and_then(|(events, _)| events.parse().ok()).unwrap_or(0);
    let failure = (!status.success()).then(|| match line.is_empty() {
        true => format!("seed {seed}: ended with {status} after {:?}: {output}", begun.elapsed()),
        false => line.to_owned(),
    });
    if history.mutant.is_some() && line.is_empty() {
        // The simulation itself failed: that says nothing about the clause.
        eprintln!("{}", failure.unwrap_or_default());
        return Ok(Outcome { events, failure: None });
    }
    Ok(Outcome { events, failure })
}
