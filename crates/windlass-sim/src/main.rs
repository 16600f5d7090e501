//! Simulates the engine: several processes of the real code on one thread, with simulated time, databases and faults,
//! all drawn from a seed. The same seed gives the same history.

mod actors;
mod database_faults;
mod environment;
mod explained;
mod focus;
mod history;
mod mutant;
mod mutants;
mod oracle;
mod patch;
mod plan;
mod process;
mod run;
mod runner;
mod settled;
mod statement;
mod system;
mod wire;

use clap::Parser;
use focus::Focus;
use mutant::Mutant;
use std::process::ExitCode;

/// Runs the engine on simulated time, databases and faults.
///
/// Exits with 0 if everything held, 1 if something did not, and 2 if an argument is wrong.
#[derive(Parser)]
#[command(name = "windlass-sim")]
struct Args {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 100)]
    seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first: u64,
    /// Run only this seed, and print its history
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// With --seed: print the result alone
    #[arg(long, requires = "seed")]
    summary: bool,
    /// With --seed: print what the engine logs
    #[arg(long, requires = "seed")]
    log: bool,
    /// What the faults concentrate on; drawn from the seed by default
    #[arg(long, value_name = "FOCUS")]
    focus: Option<Focus>,
    /// With --seed: without this clause of the protocol
    #[arg(long, value_name = "CLAUSE", requires = "seed")]
    mutant: Option<String>,
    /// Remove clauses of the protocol, one after the other or only this one, and run seeds until one fails
    #[arg(long, value_name = "CLAUSE", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with = "seed")]
    mutants: Option<String>,
}

fn main() -> ExitCode {
    let held = match Args::parse() {
        Args { seed: Some(seed), focus, summary, log, mutant, .. } => {
            simulate(seed, focus, summary, log, mutant)
        }
        Args { mutants: Some(clause), first, seeds, .. } => {
            Mutant::selected(&clause).and_then(|mutants| runner::run_mutants(mutants, first, seeds))
        }
        Args { first, seeds, focus, .. } => runner::run_seeds(first, seeds, focus),
    };
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("windlass-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn simulate(
    seed: u64,
    focus: Option<Focus>,
    summary: bool,
    log: bool,
    mutant: Option<String>,
) -> anyhow::Result<bool> {
    let mut focus = focus;
    if let Some(clause) = mutant {
        let mutant = Mutant::named(&clause)?;
        if !mutant.patches.is_empty() && !patch::is_patched() {
            return patch::run_again();
        }
        focus = focus.or(mutant.focus);
        statement::mutate(mutant);
    }
    if log {
        tracing_subscriber::fmt().without_time().with_env_filter("windlass=debug").init();
    }
    system::start(seed);
    // A new thread: the keys of the hash maps of this one were drawn before the simulation began.
    let simulation = std::thread::spawn(move || run::simulate(seed, focus, !summary));
    simulation.join().map_err(|_| anyhow::anyhow!("seed {seed}: the simulation panicked"))?
}
