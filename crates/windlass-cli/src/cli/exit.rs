//! Exit codes: 0 every item processed or skipped, 1 failed, 2 bad usage or configuration, 3 cancelled,
//! 4 paused, 5 completed with dead letters, 130 interrupted.

use super::escape;
use std::process::ExitCode;
use windlass::{Job, JobStatus};

/// The flag of every command that follows a job to its end.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct DeadLetters {
    /// Exit with 0 instead of 5 if the job completed with dead letters
    #[arg(long)]
    allow_dead_letters: bool,
}

impl DeadLetters {
    /// The code of a job. A job that is still running is not a failure of the command.
    pub(super) fn exit_code(self, job: &Job) -> ExitCode {
        ExitCode::from(match job.status {
            JobStatus::Completed if job.items.dead > 0 && !self.allow_dead_letters => 5,
            JobStatus::Completed | JobStatus::Queued | JobStatus::Processing => 0,
            JobStatus::Failed => 1,
            JobStatus::Cancelled => 3,
            JobStatus::Paused => 4,
        })
    }
}

/// The command did not reach its goal, for example an audit that does not prove its job.
pub(super) fn failed() -> ExitCode {
    ExitCode::from(1)
}

/// A signal ended the command before its job ended. Shells use the same code for Ctrl-C.
pub(super) fn interrupted() -> ExitCode {
    ExitCode::from(130)
}

/// Prints why a command was refused.
pub(super) fn refused(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", escape::indented(&format!("{error:#}"), 2));
    ExitCode::from(2)
}
