//! `windlass run`: submits a job and runs it in this process until it ends.

use super::progress::{self, Interrupt};
use super::request::RequestArgs;
use super::{config, escape, exit, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{DryRun, Engine, JobId, Options, StepError, Worker, step_problem};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass run REFRESH
  windlass run REFRESH --filter year=2024,2025 --concurrency 4
  windlass run REFRESH --ids-file keys.txt --dry-run")]
pub(super) struct Args {
    #[command(flatten)]
    request: RequestArgs,
    /// Change nothing; show a few records before and after
    #[arg(long)]
    dry_run: bool,
    /// Chunks in progress at once in this process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Print the job as JSON at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dead_letters: exit::DeadLetters,
    #[command(flatten)]
    restore: config::Restore,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let (request, identity) = args.request.read(config, Some(&engine)).await?;
    let job_type = engine.config().job_type(&request.job_type)?;
    match engine.check_step(job_type, identity.token.clone()).await {
        Ok(()) => {}
        // The job waits, as it would if the step became unavailable while it runs.
        Err(StepError::Unavailable { reason, .. }) if !args.dry_run => {
            eprintln!("{reason}; the job waits until the step is available");
        }
        Err(error) => return Err(step_problem(job_type, error).into()),
    }
    if args.dry_run {
        let dry_run = engine.dry_run(request, identity).await?;
        if args.json {
            print::json(&dry_run)?
        } else {
            show_dry_run(&dry_run)
        }
        return Ok(ExitCode::SUCCESS);
    }
    args.restore.check(&engine).await?;
    let interrupt = Interrupt::listen()?;
    let job = engine.submit(request, identity).await?.id();
    let slots = args.concurrency.map(usize::from);
    let ending = Ending { json: args.json, dead_letters: args.dead_letters };
    work_to_end(&engine, job, slots, ending, interrupt).await
}

/// What a command does when its job has ended.
pub(super) struct Ending {
    /// Whether it prints the job as JSON.
    pub(super) json: bool,
    /// Which exit code dead letters give.
    pub(super) dead_letters: exit::DeadLetters,
}

/// Runs one job in this process until it ends, is paused, or the user interrupts.
pub(super) async fn work_to_end(
    engine: &Engine,
    job: JobId,
    slots: Option<usize>,
    ending: Ending,
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let defaults = Options::default();
    let slots = slots.unwrap_or(defaults.slots);
    let (worker, handle) = Worker::new(engine.clone(), defaults.with_slots(slots).with_only(job));
    let working = tokio::spawn(worker.run());
    let followed = progress::follow(engine, job, &mut interrupt).await;
    handle.shutdown();
    let stats = working.await?;
    let finished = followed?;
    let job = engine.job(job).await?;
    if ending.json {
        print::json(&job)?
    } else {
        print::summary(&job)
    }
    if finished {
        return Ok(ending.dead_letters.exit_code(&job));
    }
    eprintln!(
        "stopped: {} completed, {} interrupted, whose commits are kept; continue with \
         `windlass worker --job {}`",
        print::count(stats.completed as i64, "chunk"),
        stats.handed_back,
        job.id
    );
    Ok(exit::interrupted())
}

fn show_dry_run(dry_run: &DryRun) {
    println!("{} would be processed; nothing was changed", print::count(dry_run.records, "record"));
    for sample in &dry_run.sample {
        let outcome = escape::indented(&sample.outcome.to_string(), 2);
        println!("\n{}  {outcome}", print::scalar(&sample.key));
        for (column, before) in sample.before.as_object().into_iter().flatten() {
            let after = sample.after.get(column);
            if after != Some(before) {
                let after = after.map_or("(deleted)".to_owned(), print::scalar);
                println!("  {}: {} → {after}", escape::one_line(column), print::scalar(before));
            }
        }
        for row in &sample.emits {
            println!("  + emits {}", row);
        }
        for insert in &sample.inserts {
            let rows = print::count(insert.rows.len() as i64, "row");
            println!("  + {rows} into {}", insert.table);
        }
    }
}
