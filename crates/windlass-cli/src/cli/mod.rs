//! The command line: one file per command or group of commands.

// First, because its macros replace `println!` and `eprintln!` in the modules below.
#[macro_use]
mod escape;

mod alerts;
mod audit;
mod check;
mod check_replicas;
mod config;
mod control;
mod dead;
mod demo;
mod dependencies;
mod exit;
mod id;
mod init;
mod inspect;
mod log;
mod log_limit;
mod meter;
mod migrate;
mod outbox;
mod output;
mod print;
mod private;
mod progress;
mod prune;
mod queue;
#[cfg(feature = "aws")]
mod queue_job;
#[cfg(feature = "aws")]
mod queue_letters;
mod request;
mod run;
mod schedules;
mod serve;
mod steer;
mod submit;
mod table;
mod token;
mod type_help;
mod worker;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Batch jobs over records: every record once, none lost, none overwritten
#[derive(Parser)]
#[command(name = "windlass", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", default_value = "windlass.toml")]
    config: PathBuf,
    /// Log more: -v info, -vv debug; `serve` and `worker` start at info
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Log errors only, and show no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// The format of log lines on standard error
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: log::Format,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  windlass demo                                  run a complete example
  windlass init postgres://localhost/app         write a windlass.toml from a database
  windlass check                                 validate it against the database
  windlass run REFRESH --dry-run                 show what would change
  windlass run REFRESH --filter year=2024,2025   submit a job and run it here
  windlass submit REFRESH && windlass worker     submit a job; run workers on any machine

Exit codes: 0 every item processed or skipped, 1 failed, 2 bad usage or configuration, 3 cancelled, 4 paused,
5 completed with dead letters, 130 interrupted";

#[derive(Subcommand)]
enum Command {
    /// Run a complete example on a database that it creates
    Demo(demo::Args),
    /// Write a commented windlass.toml, with job types for the tables of a database
    Init(init::Args),
    /// Validate the configuration against the databases and explain each job type
    Check(check::Args),
    /// Submit a job and run it in this process until it ends
    Run(run::Args),
    /// Submit a job and print its id
    Submit(submit::Args),
    /// Run jobs until stopped
    Worker(worker::Args),
    /// Serve the API and the dashboard, fire schedules, and run jobs
    Serve(serve::Args),
    /// List jobs
    Jobs(inspect::JobsArgs),
    /// Show a job
    Job(inspect::JobArgs),
    /// Follow a job until it ends
    Watch(inspect::WatchArgs),
    /// List the chunks of a job
    Chunks(inspect::ChunksArgs),
    /// Print the rows that a job's items emitted
    Output(output::Args),
    /// Cancel a job
    Cancel(steer::Args),
    /// Pause a job: its chunks stop after their current commit
    Pause(steer::Args),
    /// Resume a paused job
    Resume(steer::Args),
    /// Run the failed chunks of a job again
    Retry(steer::Args),
    /// Stop all processing, or one job type, on every machine
    Stop(control::StopArgs),
    /// Enable processing again after `stop`
    Start(control::StopArgs),
    /// Limit concurrency and rate of a job type or a job, over all machines
    Throughput(control::ThroughputArgs),
    /// List schedules, pause and resume them
    Schedules(schedules::Args),
    /// Show which jobs run after which
    Dependencies(dependencies::Args),
    /// List alerts and their delivery, and acknowledge them
    Alerts(alerts::Args),
    /// List worker processes
    Workers(control::WorkersArgs),
    /// List, redrive, ignore and export dead letters
    #[command(subcommand)]
    Dead(dead::Command),
    /// List requests that wait in the outboxes, and why
    Outbox(outbox::Args),
    /// Prove that a job processed every record exactly once
    Audit(audit::Args),
    /// Create a token for development
    Token(token::Args),
    /// Create or update the tables of the store, the ledgers and the outboxes
    Migrate(migrate::Args),
    /// Delete expired jobs, chunks and dead letters; workers also do this
    Prune(prune::Args),
}

/// Parses the command line. A usage error quotes arguments, which may contain control characters.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            let _ = error.print();
            let args: Vec<String> = std::env::args().collect();
            if error.kind() == clap::error::ErrorKind::DisplayHelp {
                type_help::print(&args);
            }
            std::process::exit(error.exit_code())
        }
        eprintln!("{}", error.render().to_string().trim_end());
        std::process::exit(error.exit_code())
    })
}

/// Runs the command and returns its exit code.
pub(crate) async fn main(cli: Cli) -> ExitCode {
    let is_daemon = matches!(cli.command, Command::Serve(_) | Command::Worker(_));
    log::init(log::Verbosity { verbose: cli.verbose, quiet: cli.quiet, is_daemon }, cli.log_format);
    let path = cli.config.as_path();
    let result = match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Init(args) => init::run(args, path).await,
        Command::Check(args) => check::run(args, path).await,
        Command::Run(args) => run::run(args, path).await,
        Command::Submit(args) => submit::run(args, path).await,
        Command::Worker(args) => worker::run(args, path).await,
        Command::Serve(args) => serve::run(args, path).await,
        Command::Jobs(args) => inspect::jobs(args, path).await,
        Command::Job(args) => inspect::job(args, path).await,
        Command::Watch(args) => inspect::watch(args, path).await,
        Command::Chunks(args) => inspect::chunks(args, path).await,
        Command::Output(args) => output::run(args, path).await,
        Command::Cancel(args) => steer::run(args, path, steer::Action::Cancel).await,
        Command::Pause(args) => steer::run(args, path, steer::Action::Pause).await,
        Command::Resume(args) => steer::run(args, path, steer::Action::Resume).await,
        Command::Retry(args) => steer::run(args, path, steer::Action::Retry).await,
        Command::Stop(args) => control::stop(args, path, true).await,
        Command::Start(args) => control::stop(args, path, false).await,
        Command::Throughput(args) => control::throughput(args, path).await,
        Command::Schedules(args) => schedules::run(args, path).await,
        Command::Dependencies(args) => dependencies::run(args, path).await,
        Command::Alerts(args) => alerts::run(args, path).await,
        Command::Workers(args) => control::workers(args, path).await,
        Command::Dead(command) => dead::run(command, path).await,
        Command::Outbox(args) => outbox::run(args, path).await,
        Command::Audit(args) => audit::run(args, path).await,
        Command::Token(args) => token::run(args, path).await,
        Command::Migrate(args) => migrate::run(args, path).await,
        Command::Prune(args) => prune::run(args, path).await,
    };
    config::close().await;
    result.unwrap_or_else(|error| exit::refused(&error))
}
