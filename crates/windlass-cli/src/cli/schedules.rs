//! `windlass schedules`: when job types are submitted by themselves.

use super::{config, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Engine, Scheduled};

#[derive(clap::Args)]
#[command(after_help = "Schedules are kept by `windlass serve`.

Examples:
  windlass schedules                 all of them, with the next times
  windlass schedules pause NIGHTLY   nothing is submitted by it
  windlass schedules resume NIGHTLY  from the next time on")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Let a schedule rest
    Pause(TypeArgs),
    /// Let it go on with its next time
    Resume(TypeArgs),
}

#[derive(clap::Args)]
struct TypeArgs {
    /// The job type
    #[arg(value_name = "TYPE")]
    job_type: String,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    match args.command {
        Some(Command::Pause(TypeArgs { job_type })) => {
            engine.pause_schedule(&job_type, true).await?;
            println!(
                "the schedule of {job_type} is paused; `windlass schedules resume {job_type}`"
            );
        }
        Some(Command::Resume(TypeArgs { job_type })) => {
            engine.pause_schedule(&job_type, false).await?;
            println!("the schedule of {job_type} goes on");
        }
        None => list(&engine, args.json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(engine: &Engine, as_json: bool) -> Result<()> {
    engine.register_schedules().await?;
    let schedules = engine.schedules().await?;
    if as_json {
        return print::json(&schedules);
    }
    if schedules.is_empty() {
        println!("no schedules; `schedule = {{ cron = \"0 3 * * *\" }}` in a job type makes one");
        return Ok(());
    }
    let mut table = print::table(&["TYPE", "CRON", "ZONE", "NEXT", "LAST", "STATE"]);
    for Scheduled { row, schedule, next_times } in &schedules {
        let local = |time: &chrono::DateTime<chrono::Utc>| {
            time.with_timezone(&schedule.timezone).format("%Y-%m-%d %H:%M %Z").to_string()
        };
        let state = match (&row.error, row.paused) {
            (_, true) => "paused".to_owned(),
            (Some(error), _) => format!("cannot be fired: {}", print::short(error, 80)),
            _ => "goes".to_owned(),
        };
        table.add_row([
            row.job_type.clone(),
            schedule.cron.clone(),
            schedule.timezone.to_string(),
            next_times.iter().map(local).collect::<Vec<_>>().join("\n"),
            row.last_at.as_ref().map(local).unwrap_or_default(),
            state,
        ]);
    }
    println!("{table}");
    Ok(())
}
