//! Exit codes: 0 completed, 1 failed, 2 bad usage or configuration, 3 cancelled, 4 paused.

use super::escape;
use std::process::ExitCode;
use windlass::JobStatus;

/// The code of a job's status. A job that is still running is not a failure of the command.
pub(super) fn of(status: JobStatus) -> ExitCode {
    ExitCode::from(match status {
        JobStatus::Completed | JobStatus::Queued | JobStatus::Processing => 0,
        JobStatus::Failed => 1,
        JobStatus::Cancelled => 3,
        JobStatus::Paused => 4,
    })
}

/// The command did not reach its goal: a job is not finished, an audit not proven.
pub(super) fn failed() -> ExitCode {
    ExitCode::from(1)
}

/// Prints why a command was refused.
pub(super) fn refused(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", escape::indented(&format!("{error:#}"), 2));
    ExitCode::from(2)
}
