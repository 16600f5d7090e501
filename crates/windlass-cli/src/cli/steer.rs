//! `windlass cancel`, `pause`, `resume`, `retry`.

use super::{config, escape, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{JobId, JobStatus};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's id
    id: JobId,
    /// Print the job as JSON
    #[arg(long)]
    json: bool,
}

/// A change of a job's status.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Cancel,
    Pause,
    Resume,
    Retry,
}

pub(super) async fn run(args: Args, config: &Path, action: Action) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    match action {
        Action::Cancel => engine.cancel(args.id).await?,
        Action::Pause => engine.pause(args.id).await?,
        Action::Resume => engine.resume(args.id).await?,
        Action::Retry => engine.retry(args.id).await?,
    };
    let job = engine.job(args.id).await?;
    if args.json {
        print::json(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}  {}  {}", print::status(job.status), job.job_type, job.id);
    if let (Action::Retry, chunks) = (action, &job.chunks) {
        println!(
            "{} will run again; {} already completed",
            print::count(chunks.total - chunks.completed - chunks.cancelled, "chunk"),
            print::number(chunks.completed)
        );
    }
    match action {
        Action::Resume | Action::Retry => {
            println!(
                "a running worker will process it; if none runs: windlass worker --job {}",
                job.id
            );
        }
        Action::Pause => println!("chunks in progress are handed back after their current commit"),
        Action::Cancel => {
            if let Some(error) = job.error.filter(|_| job.status != JobStatus::Cancelled) {
                println!("{}", escape::indented(&error, 2));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
