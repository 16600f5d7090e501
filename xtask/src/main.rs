//! The project's own tasks: `cargo xtask TASK`. One file per task.

mod bench;
mod cargo;
mod cost;
mod debian;
mod deploy;
mod matrix;
mod needs;
mod nightly;
mod node;
mod python;
mod screenshots;
mod simulate;
mod test;
mod tidy;
mod torture;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

/// Checks, measures and documents Windlass.
///
/// Exits with 0 on success, 1 if a check or a test failed, and 2 if a program is missing or an argument is wrong.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check everything: house rules, dependencies, format, lints, and all tests.
    ///
    /// The last line is `N passed, M failed`; a failed check counts as one failure. As root on Debian, it installs the
    /// programs that the tests start. It installs Python packages from PyPI beside cargo's build output.
    Test(TestArgs),
    /// Measure, as ratios within one run.
    Bench(BenchArgs),
    /// Run examples/nightly on its own servers and print the measured values beside the required ones.
    Nightly {
        /// Number of transactions, up to 10,000,000
        #[arg(long, value_name = "N", default_value = "1_000_000")]
        rows: String,
        /// Load test: run the report with each of these numbers of slots, such as 1,10,100,1000, and print throughput,
        /// connections, processor time and reads
        #[arg(long, value_name = "N,N,…")]
        concurrency: Option<String>,
        /// Run nothing; print what a month costs on AWS, as in examples/nightly/COST.md
        #[arg(long, conflicts_with_all = ["rows", "concurrency"])]
        cost: bool,
    },
    /// Kill, freeze and cut off processes and databases at random while jobs of every kind run, and check the history.
    ///
    /// A failure prints its seed and keeps the logs. The seed decides what is done, not at which instant, so a failure may
    /// need several runs.
    Torture {
        /// How long, for all databases together
        #[arg(long, value_name = "M", default_value = "6", value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// The seed of the first round; each round takes the next one
        #[arg(long, value_name = "S", default_value = "1")]
        seed: u64,
        /// Only with the records in this database
        #[arg(long, value_name = "DATABASE")]
        on: Option<torture::Database>,
    },
    /// Check the files of deploy/: Kubernetes schemas, Terraform, the state machines. Also a part of `test`.
    Deployment,
    /// Make the screenshots in docs/images again.
    Screenshots,
    /// Run the engine on simulated time, databases and faults, drawn from seeds.
    ///
    /// `--seeds N` runs N histories, from `--first SEED` on; `--seed SEED` prints one; `--mutants` removes clauses of the
    /// protocol, one after the other, and shows which seed finds it. Also a part of `test`.
    #[command(disable_help_flag = true)]
    Simulate {
        /// Arguments of the simulation; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Format the code, then run the checks that need no tests.
    Tidy,
}

#[derive(Args)]
struct TestArgs {
    /// Run only the tests whose name contains FILTER, and no other check
    #[arg(long, value_name = "FILTER", conflicts_with = "quick")]
    only: Option<String>,
    /// Run the fast checks and tests: house rules, dependencies, format, unit tests, the conformance suites on
    /// SQLite, and the tests of the commands
    #[arg(long)]
    quick: bool,
    /// Run the conformance, protocol and fault suites on every supported version of PostgreSQL, on MySQL and on the newest
    /// MariaDB, and no other check; with SERVER only where the name contains it, such as `mysql`. The servers are installed
    /// from npm and Debian beside cargo's build output
    #[arg(long, value_name = "SERVER", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["only", "quick"])]
    matrix: Option<String>,
}

#[derive(Args)]
struct BenchArgs {
    /// Benchmarks to run; all of them by default. An unknown name prints the list
    names: Vec<String>,
    /// Use a tenth of the rows
    #[arg(long)]
    quick: bool,
    /// Use at most N rows
    #[arg(long, value_name = "N")]
    rows: Option<u64>,
    /// Run one scenario instead: a backfill of a table of 10,000,000 rows under the load of an application, by Windlass,
    /// by loops and by job queues, with ten `kill -9`
    #[arg(long, conflicts_with_all = ["names", "quick"])]
    headline: bool,
    /// Write the headline's table and chart into docs/
    #[arg(long, requires = "headline")]
    write: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    change_to_root()?;
    match task {
        Task::Test(TestArgs { only: Some(filter), .. }) => test::run_only(&filter),
        Task::Test(TestArgs { quick: true, .. }) => test::run_quick(),
        Task::Test(TestArgs { matrix: Some(filter), .. }) => test::run_matrix(&filter),
        Task::Test(_) => test::run_all(),
        Task::Bench(args) => bench::run(&args),
        Task::Nightly { cost: true, .. } => nightly::print_cost(),
        Task::Nightly { rows, concurrency, .. } => nightly::run(&rows, concurrency.as_deref()),
        Task::Torture { minutes, seed, on } => torture::run(minutes, seed, on),
        Task::Deployment => deploy::run(),
        Task::Screenshots => screenshots::run(),
        Task::Simulate { arguments } => simulate::run(&arguments),
        Task::Tidy => tidy::run(),
    }
}

/// A task may be started from any folder of the project. Cargo sets the folder of xtask.
fn change_to_root() -> anyhow::Result<()> {
    if let Some(xtask) = env::var_os("CARGO_MANIFEST_DIR") {
        let root = Path::new(&xtask).parent().context("xtask has no parent folder")?;
        env::set_current_dir(root).with_context(|| root.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
