//! `windlass jobs`, `job`, `watch`, `chunks`: read-only commands.

use super::id::{self, JobRef};
use super::progress::{self, Interrupt};
use super::{config, dependencies, exit, print, private, queue};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass::{JobFilter, JobStatus};
use windlass_core::ChunkStatus;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass jobs --type REFRESH --status FAILED --json")]
pub(super) struct JobsArgs {
    /// Only of this type
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Only in this status
    #[arg(long)]
    status: Option<JobStatus>,
    /// Maximum number of jobs to list
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Only jobs older than this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<JobRef>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass job ID --html report.html   # once it has ended")]
pub(super) struct JobArgs {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
    /// Write the report of the job to this file, as one HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// A job whose items were sent to this queue, sqs://NAME or its URL; the id must be whole
    #[arg(long, value_name = "QUEUE", conflicts_with = "html")]
    queue: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct WatchArgs {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dead_letters: exit::DeadLetters,
}

#[derive(clap::Args)]
pub(super) struct ChunksArgs {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
    /// Only in this status
    #[arg(long)]
    status: Option<ChunkStatus>,
    /// Only after this chunk, for the next page
    #[arg(long, value_name = "CHUNK")]
    after: Option<i64>,
    /// Maximum number of chunks to list
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn jobs(args: JobsArgs, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let filter = JobFilter {
        job_type: args.r#type,
        status: args.status,
        before: id::find(args.before.as_ref(), &engine).await?,
        limit: args.limit,
        ..JobFilter::default()
    };
    let jobs = engine.store().jobs(&filter).await?;
    if args.json {
        print::json(&jobs)?;
        return Ok(ExitCode::SUCCESS);
    }
    if jobs.is_empty() {
        println!("no jobs; submit one with `windlass run TYPE`");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        print::table(&["ID", "TYPE", "STATUS", "ITEMS", "DEAD", "CHUNKS", "CREATED", "BY", "WHY"]);
    for job in &jobs {
        table.add_row([
            print::id(job.id),
            job.job_type.clone(),
            print::status(job.status),
            format!("{}/{}", print::number(job.items.done()), print::number(job.items.total)),
            print::number(job.items.dead),
            format!("{}/{}", job.chunks.completed, job.chunks.total),
            print::short_time(job.created_at),
            job.submitted_by.clone(),
            print::short(
                &print::headline(&job.error.clone().or(job.waiting()).unwrap_or_default()),
                80,
            ),
        ]);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn job(args: JobArgs, config: &Path) -> Result<ExitCode> {
    if let Some(queue) = &args.queue {
        let ask = queue::Ask::Job { id: args.id.whole()?, json: args.json };
        return queue::run(queue, ask, config).await;
    }
    let engine = config::engine(config).await?;
    let id = args.id.find(&engine).await?;
    if let Some(file) = &args.html {
        let page = engine.report(id).await?;
        private::write(file, &page).with_context(|| format!("--html {}", file.display()))?;
        println!("wrote {}", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    let job = engine.job(id).await?;
    if args.json {
        print::json(&job)?
    } else {
        print::summary(&job);
        dependencies::beside(&engine, &job).await?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn watch(args: WatchArgs, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let id = args.id.find(&engine).await?;
    let ended = progress::follow(&engine, id, &mut Interrupt::listen()?).await?;
    let job = engine.job(id).await?;
    if args.json {
        print::json(&job)?
    } else {
        print::summary(&job)
    }
    Ok(if ended { args.dead_letters.exit_code(&job) } else { exit::interrupted() })
}

pub(super) async fn chunks(args: ChunksArgs, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let id = args.id.find(&engine).await?;
    let job = engine.job(id).await?;
    let chunks = engine.store().chunks(id, args.status, args.after, args.limit).await?;
    if args.json {
        print::json(&chunks)?;
        return Ok(ExitCode::SUCCESS);
    }
    let header = [
        "CHUNK", "STATUS", "ITEMS", "DONE", "DEAD", "ATTEMPTS", "LOST", "WORKER", "STARTED",
        "TOOK", "ERROR",
    ];
    let mut table = print::table(&header);
    for chunk in &chunks {
        let counts = chunk.counts;
        let took = chunk.started_at.zip(chunk.finished_at).map(|(from, to)| to - from);
        table.add_row([
            chunk.chunk.to_string(),
            chunk.status.to_string(),
            print::number(chunk.items),
            print::number(counts.processed + counts.skipped),
            print::number(counts.dead),
            chunk.attempts.to_string(),
            chunk.losses.to_string(),
            chunk.worker.clone().unwrap_or_default(),
            chunk.started_at.map(print::short_time).unwrap_or_default(),
            took.map(|took| format!("{:.3} s", took.as_seconds_f64())).unwrap_or_default(),
            print::headline(chunk.error.as_deref().unwrap_or_default()),
        ]);
    }
    println!("{table}");
    if chunks.is_empty() && args.after.is_none() && args.status.is_none() && job.chunks.total > 0 {
        println!("{} pruned", print::count(job.chunks.total, "chunk"));
    }
    if chunks.len() == args.limit as usize
        && let Some(last) = chunks.last()
    {
        println!("more: windlass chunks {id} --after {}", last.chunk);
    }
    Ok(ExitCode::SUCCESS)
}
