//! `windlass cancel`, `pause`, `resume`, `retry`.

use super::id::JobRef;
use super::{config, escape, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::JobStatus;

#[derive(clap::Args)]
pub(super) struct Args {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
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
    let id = args.id.find(&engine).await?;
    match action {
        Action::Cancel => engine.cancel(id).await?,
        Action::Pause => engine.pause(id).await?,
        Action::Resume => engine.resume(id).await?,
        Action::Retry => engine.retry(id).await?,
    };
    let job = engine.job(id).await?;
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
