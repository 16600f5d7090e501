//! `windlass prune`: removing what ended long ago.

use super::{config, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windlass::Retention;

#[derive(clap::Args)]
#[command(
    after_help = "Without --older-than, what each job type's `retention` says: by default the \
chunks and the ledger of a job that completed or was cancelled go after 7 days, and a job goes after \
90 days, unless it has dead letters that are `new`. Workers do this every ten minutes.

Examples:
  windlass prune                     what is due by now
  windlass prune --older-than 30d    everything that ended more than 30 days ago, letters too"
)]
pub(super) struct Args {
    /// Everything that ended longer ago than this, dead letters included: 12h, 30d
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    older_than: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let pruned = engine.prune(args.older_than.map(Retention::of).as_ref()).await?;
    if args.json {
        print::json(&pruned)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "removed {} jobs, {} chunks, {} ledger rows, {} dead letters, {} alerts; {} jobs are kept without \
         their chunks",
        print::number(pruned.jobs as i64),
        print::number(pruned.chunks as i64),
        print::number(pruned.ledger_rows as i64),
        print::number(pruned.dead_letters as i64),
        print::number(pruned.alerts as i64),
        print::number(pruned.emptied as i64),
    );
    Ok(ExitCode::SUCCESS)
}
