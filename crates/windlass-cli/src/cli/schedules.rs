//! `windlass schedules`: lists, pauses and resumes schedules.

use super::{config, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Engine, Scheduled};

#[derive(clap::Args)]
#[command(after_help = "`windlass serve` fires schedules.

Examples:
  windlass schedules                 all schedules with their next times
  windlass schedules pause NIGHTLY   stop firing it
  windlass schedules resume NIGHTLY  fire it again from its next time on")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Pause a schedule
    Pause(TypeArgs),
    /// Resume a schedule from its next time on
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
                "the schedule of {job_type} is paused; `windlass schedules resume {job_type}` resumes it"
            );
        }
        Some(Command::Resume(TypeArgs { job_type })) => {
            engine.pause_schedule(&job_type, false).await?;
            println!("the schedule of {job_type} is resumed");
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
        println!("no schedules; add `schedule = {{ cron = \"0 3 * * *\" }}` to a job type");
        return Ok(());
    }
    let mut table = print::table(&["TYPE", "CRON", "ZONE", "NEXT", "LAST", "STATE"]);
    for Scheduled { row, schedule, next_times } in &schedules {
        let local = |time: &chrono::DateTime<chrono::Utc>| {
            time.with_timezone(&schedule.timezone).format("%Y-%m-%d %H:%M %Z").to_string()
        };
        let state = match (&row.error, row.paused) {
            (_, true) => "paused".to_owned(),
            (Some(error), _) => format!("failed to fire: {}", print::short(error, 80)),
            _ => "active".to_owned(),
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
