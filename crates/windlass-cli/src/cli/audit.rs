//! `windlass audit`: proves a job.

use super::{config, escape, exit, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Audit, Drift, JobId};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The job's id
    id: JobId,
    /// Do not count the rows of the source, which may take long; nothing is proven then
    #[arg(long)]
    no_source: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let audit = engine.audit_with(args.id, !args.no_source).await?;
    if args.json {
        print::json(&audit)?
    } else {
        show(&audit)
    }
    Ok(if audit.is_proven() { ExitCode::SUCCESS } else { exit::failed() })
}

/// The audit in a few lines.
pub(super) fn show(audit: &Audit) {
    let number = print::number;
    let counts = audit.counts;
    println!("{}  job {}", audit.verdict.as_str(), audit.job_id);
    println!(
        "  {} chunks of {} segments: {} items planned",
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
    if audit.left > 0 {
        println!("  {} rows left the source as they were processed", number(audit.left));
    }
    match audit.drift {
        Some(Drift { appeared: 0, disappeared: 0 }) => {
            println!("  no row of the source was inserted, deleted or moved since planning");
        }
        Some(Drift { appeared, disappeared }) => println!(
            "  drift since planning: {} rows appeared, {} disappeared",
            number(appeared),
            number(disappeared)
        ),
        None => {}
    }
    for finding in &audit.findings {
        println!("  ! {}", escape::indented(&finding.to_string(), 4));
    }
    for reason in &audit.not_judged {
        println!("  ? {}", escape::indented(&reason.to_string(), 4));
    }
}
