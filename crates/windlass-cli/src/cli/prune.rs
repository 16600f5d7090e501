//! `windlass prune`: deletes expired jobs, chunks and dead letters.

use super::{config, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windlass::Retention;

#[derive(clap::Args)]
#[command(
    after_help = "Without --older-than, the `retention` of each job type applies. By default \
the chunks and the ledger of a completed or cancelled job are deleted after 7 days, and the job after \
90 days, unless it has dead letters that are `new`. Workers do this every ten minutes.

Examples:
  windlass prune                     delete what has expired
  windlass prune --older-than 30d    delete all that ended more than 30 days ago, dead letters too"
)]
pub(super) struct Args {
    /// Delete all that ended longer ago than this, dead letters included: 12h, 30d
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
        "deleted {}, {}, {}, {}, {}; {} kept, with only their chunks deleted",
        print::count(pruned.jobs as i64, "job"),
        print::count(pruned.chunks as i64, "chunk"),
        print::count(pruned.ledger_rows as i64, "ledger row"),
        print::count(pruned.dead_letters as i64, "dead letter"),
        print::count(pruned.alerts as i64, "alert"),
        print::count(pruned.emptied as i64, "job"),
    );
    Ok(ExitCode::SUCCESS)
}
