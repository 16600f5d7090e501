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

/// What to do with a job.
#[derive(Clone, Copy)]
pub(super) enum Move {
    Cancel,
    Pause,
    Resume,
    Retry,
}

pub(super) async fn run(args: Args, config: &Path, what: Move) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    match what {
        Move::Cancel => engine.cancel(args.id).await?,
        Move::Pause => engine.pause(args.id).await?,
        Move::Resume => engine.resume(args.id).await?,
        Move::Retry => engine.retry(args.id).await?,
    };
    let job = engine.job(args.id).await?;
    if args.json {
        print::json(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}  {}  {}", print::status(job.status), job.job_type, job.id);
    if let (Move::Retry, chunks) = (what, &job.chunks) {
        println!(
            "chunks: {} go again; {} are done and skipped",
            print::number(chunks.total - chunks.completed - chunks.cancelled),
            print::number(chunks.completed)
        );
    }
    match what {
        Move::Resume | Move::Retry => {
            println!("running workers take it up; otherwise: windlass worker --job {}", job.id);
        }
        Move::Pause => println!("chunks in flight are handed back after the commit they are at"),
        Move::Cancel => {
            if let Some(error) = job.error.filter(|_| job.status != JobStatus::Cancelled) {
                println!("{}", escape::indented(&error, 2));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
