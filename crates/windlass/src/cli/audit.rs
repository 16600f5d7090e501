//! `windlass audit`: proves a job.

use super::{exit, load, output};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Audit, JobId};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's id
    id: JobId,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = load::engine(config).await?;
    let audit = engine.audit(args.id).await?;
    if args.json {
        output::json(&audit)?
    } else {
        show(&audit)
    }
    Ok(if audit.proven { ExitCode::SUCCESS } else { exit::failed() })
}

/// The audit in a few lines.
pub(super) fn show(audit: &Audit) {
    let number = output::number;
    let counts = audit.counts;
    println!("{}  job {}", if audit.proven { "PROVEN" } else { "NOT PROVEN" }, audit.job_id);
    println!(
        "  {} chunks of {} segments tile the source as planned: {} items",
        number(audit.chunks),
        audit.segments.saturating_sub(1).max(1),
        number(audit.planned)
    );
    println!(
        "  {} rows read = {} processed + {} skipped + {} dead letters",
        number(counts.read),
        number(counts.processed),
        number(counts.skipped),
        number(counts.dead)
    );
    match audit.drift {
        Some(0) => println!("  the source has as many rows now as were planned"),
        Some(drift) => println!("  drift: the source has {drift:+} rows since it was planned"),
        None => {}
    }
    for finding in &audit.findings {
        println!("  ! {finding}");
    }
}
