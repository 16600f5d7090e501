//! The `windlass` binary: reads the command line and leaves with the exit code it promises.

mod cli;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    leave_quietly_when_nobody_reads();
    cli::main(cli::Cli::parse()).await
}

/// `windlass jobs | head` closes our output early, which is no error. The signal for it stays
/// ignored, since a pipe to a child process may break too.
fn leave_quietly_when_nobody_reads() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed printing to stdout")) {
            std::process::exit(0);
        }
        report(panic);
    }));
}
