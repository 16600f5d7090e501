//! The `windlass` binary: reads the command line and leaves with the exit code it promises.

mod cli;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    cli::main(cli::Cli::parse()).await
}
