//! `windlass stop`, `start`, `throughput`, `workers`: controls of all machines.

use super::id::{self, JobRef};
use super::{config, print};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use windlass::{Control, Engine};
use windlass_store::{AS_DEFINED, EVERYTHING, UNLIMITED};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass stop                stop all processing, on every machine
  windlass stop REFRESH        stop one job type
  windlass start               enable processing again")]
pub(super) struct StopArgs {
    /// The job type; all of them by default
    #[arg(value_name = "TYPE")]
    job_type: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass throughput                              what is limited, suspended or stopped
  windlass throughput REFRESH --concurrency 4      at most 4 chunks in progress, over all machines
  windlass throughput REFRESH --rate 5000          at most 5,000 items per second, over all machines
  windlass throughput --job 0198… --concurrency 1  limit one job
  windlass throughput REFRESH --concurrency default --rate unlimited")]
pub(super) struct ThroughputArgs {
    /// The job type
    #[arg(value_name = "TYPE", conflicts_with = "job")]
    job_type: Option<String>,
    /// One job instead of a job type
    #[arg(long, value_name = "ID")]
    job: Option<JobRef>,
    /// Chunks in progress at once: a number, `unlimited`, or `default` for the value in the definition
    #[arg(long, value_name = "N", value_parser = limit)]
    concurrency: Option<i64>,
    /// Items per second: a number, `unlimited`, or `default`
    #[arg(long, value_name = "N", value_parser = limit)]
    rate: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct WorkersArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn stop(args: StopArgs, config: &Path, stopped: bool) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let subject = args.job_type.as_deref().unwrap_or(EVERYTHING);
    if args.job_type.is_some() {
        engine.config().job_type(subject)?;
    }
    engine.store().stop(subject, stopped).await?;
    let what = args.job_type.as_deref().unwrap_or("all processing");
    match stopped {
        true => println!(
            "{what} is stopped on every machine: no new work is planned or leased, commits in progress \
             finish, the rest is handed back. `windlass start` enables it again"
        ),
        false => println!("{what} is enabled"),
    }
    if !stopped && args.job_type.is_some() && is_stopped(&engine).await? {
        println!("but all processing is stopped; `windlass start` enables it again");
    }
    Ok(ExitCode::SUCCESS)
}

async fn is_stopped(engine: &Engine) -> Result<bool> {
    let controls = engine.store().controls().await?;
    Ok(controls.iter().any(|control| control.subject == EVERYTHING && control.stopped))
}

pub(super) async fn throughput(args: ThroughputArgs, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let job = id::find(args.job.as_ref(), &engine).await?;
    let subject = match (&args.job_type, job) {
        (Some(job_type), _) => Some(engine.config().job_type(job_type)?.name.clone()),
        (None, Some(job)) => Some(engine.job(job).await?.id.to_string()),
        (None, None) => None,
    };
    if args.concurrency.is_some() || args.rate.is_some() {
        let Some(subject) = &subject else { bail!("name a job type, or give --job ID") };
        engine.store().set_throughput(subject, args.concurrency, args.rate).await?;
    }
    let mut controls = engine.store().controls().await?;
    controls.retain(|control| subject.as_ref().is_none_or(|subject| control.subject == *subject));
    if args.json {
        print::json(&controls)?;
    } else {
        show(&controls);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(controls: &[Control]) {
    if controls.is_empty() {
        println!("no limits; nothing is stopped");
        return;
    }
    let mut table = print::table(&["SUBJECT", "CONCURRENCY", "ITEMS/S", "STATE", "WHY"]);
    let number = |limit: Option<i64>| match limit {
        None => "default".to_owned(),
        Some(UNLIMITED) => "unlimited".to_owned(),
        Some(limit) => print::number(limit),
    };
    for control in controls {
        let state = match control {
            Control { stopped: true, .. } => "stopped",
            Control { suspended: Some(why), subject, .. } if subject.starts_with("connection:") => {
                if why.starts_with("throttled") {
                    "throttled"
                } else {
                    "unavailable"
                }
            }
            Control { suspended: Some(_), .. } => "suspended",
            _ => "enabled",
        };
        table.add_row([
            if control.subject == EVERYTHING { "all processing" } else { &control.subject }
                .to_owned(),
            number(control.concurrency),
            number(control.rate),
            state.to_owned(),
            print::short(control.suspended.as_deref().unwrap_or_default(), 80),
        ]);
    }
    println!("{table}");
}

pub(super) async fn workers(args: WorkersArgs, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let workers = engine.store().workers().await?;
    if args.json {
        print::json(&workers)?;
        return Ok(ExitCode::SUCCESS);
    }
    if workers.is_empty() {
        println!("no workers; `windlass worker` starts one");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table =
        print::table(&["NAME", "CHUNKS", "SLOTS", "JOB TYPES", "SINCE", "LAST SEEN", "STATE"]);
    for worker in &workers {
        table.add_row([
            worker.name.clone(),
            print::number(worker.chunks),
            print::number(worker.slots),
            worker.job_types.clone().unwrap_or_default(),
            print::time(worker.started_at),
            print::time(worker.seen_at),
            if worker.vanished { "lost" } else { "alive" }.to_owned(),
        ]);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// Parses a limit.
fn limit(text: &str) -> Result<i64, String> {
    match text {
        "unlimited" => Ok(UNLIMITED),
        "default" => Ok(AS_DEFINED),
        _ => match text.parse() {
            Ok(number @ 1..) => Ok(number),
            _ => Err("expected a number of at least 1, `unlimited` or `default`".to_owned()),
        },
    }
}
