//! The command line: one file per command, or per family of commands.

// First: its macros are those of all that follows.
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
mod init;
mod inspect;
mod log;
mod migrate;
mod outbox;
mod output;
mod print;
mod private;
mod progress;
mod prune;
mod queue;
mod request;
mod run;
mod schedules;
mod serve;
mod steer;
mod submit;
mod token;
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
    /// Say more: -v what happens, -vv every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  windlass demo                                  see it work, nothing needed
  windlass init postgres://localhost/app         write a windlass.toml from a database
  windlass check                                 is everything right?
  windlass run REFRESH --dry-run                 what would it do?
  windlass run REFRESH --filter year=2024,2025   do it here, to the end
  windlass submit REFRESH && windlass worker     queue it; work the queue, on any machine

Exit codes: 0 completed, 1 failed, 2 bad usage or configuration, 3 cancelled, 4 paused";

#[derive(Subcommand)]
enum Command {
    /// Show a whole job on a database made for the purpose
    Demo(demo::Args),
    /// Write a commented windlass.toml, from a database's tables when given its URL
    Init(init::Args),
    /// Check the configuration against the databases and explain each job type
    Check(check::Args),
    /// Submit a job and work it here, to the end
    Run(run::Args),
    /// Submit a job and print its id
    Submit(submit::Args),
    /// Work the queue until stopped
    Worker(worker::Args),
    /// Serve the API, and work the queue beside it
    Serve(serve::Args),
    /// List jobs
    Jobs(inspect::JobsArgs),
    /// Show a job
    Job(inspect::JobArgs),
    /// Follow a job to its end
    Watch(inspect::WatchArgs),
    /// List the chunks of a job
    Chunks(inspect::ChunksArgs),
    /// Print the rows that a job's items emitted
    Output(output::Args),
    /// Cancel a job
    Cancel(steer::Args),
    /// Pause a job: nothing new of it is begun
    Pause(steer::Args),
    /// Resume a paused job
    Resume(steer::Args),
    /// Run what failed in a job again
    Retry(steer::Args),
    /// The emergency stop: nothing new is loaded or claimed, on any machine
    Stop(control::StopArgs),
    /// Let what was stopped go on
    Start(control::StopArgs),
    /// Limit a job type or a job over all machines, while it runs
    Throughput(control::ThroughputArgs),
    /// List schedules, pause and resume them
    Schedules(schedules::Args),
    /// Show which job follows which
    Dependencies(dependencies::Args),
    /// List what went wrong, and who has been told
    Alerts(alerts::Args),
    /// List the processes that work
    Workers(control::WorkersArgs),
    /// Look after dead letters
    #[command(subcommand)]
    Dead(dead::Command),
    /// List what waits in the outboxes to be submitted, and why
    Outbox(outbox::Args),
    /// Prove that a job missed nothing and did nothing twice
    Audit(audit::Args),
    /// Make a token for development
    Token(token::Args),
    /// Bring the store and the ledgers up to date
    Migrate(migrate::Args),
    /// Remove what ended long ago; workers do it by themselves
    Prune(prune::Args),
}

/// Reads the command line. What is wrong with it repeats words that may come from a script's input.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        eprintln!("{}", error.render().to_string().trim_end());
        std::process::exit(error.exit_code())
    })
}

/// Runs the command and turns what came of it into an exit code.
pub(crate) async fn main(cli: Cli) -> ExitCode {
    log::init(cli.verbose);
    let config = cli.config.as_path();
    let result = match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Init(args) => init::run(args, config).await,
        Command::Check(args) => check::run(args, config).await,
        Command::Run(args) => run::run(args, config).await,
        Command::Submit(args) => submit::run(args, config).await,
        Command::Worker(args) => worker::run(args, config).await,
        Command::Serve(args) => serve::run(args, config).await,
        Command::Jobs(args) => inspect::jobs(args, config).await,
        Command::Job(args) => inspect::job(args, config).await,
        Command::Watch(args) => inspect::watch(args, config).await,
        Command::Chunks(args) => inspect::chunks(args, config).await,
        Command::Output(args) => output::run(args, config).await,
        Command::Cancel(args) => steer::run(args, config, steer::Move::Cancel).await,
        Command::Pause(args) => steer::run(args, config, steer::Move::Pause).await,
        Command::Resume(args) => steer::run(args, config, steer::Move::Resume).await,
        Command::Retry(args) => steer::run(args, config, steer::Move::Retry).await,
        Command::Stop(args) => control::stop(args, config, true).await,
        Command::Start(args) => control::stop(args, config, false).await,
        Command::Throughput(args) => control::throughput(args, config).await,
        Command::Schedules(args) => schedules::run(args, config).await,
        Command::Dependencies(args) => dependencies::run(args, config).await,
        Command::Alerts(args) => alerts::run(args, config).await,
        Command::Workers(args) => control::workers(args, config).await,
        Command::Dead(command) => dead::run(command, config).await,
        Command::Outbox(args) => outbox::run(args, config).await,
        Command::Audit(args) => audit::run(args, config).await,
        Command::Token(args) => token::run(args, config).await,
        Command::Migrate(args) => migrate::run(args, config).await,
        Command::Prune(args) => prune::run(args, config).await,
    };
    result.unwrap_or_else(|error| exit::refused(&error))
}
