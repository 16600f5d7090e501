//! `windlass audit`: proves that a job processed every record exactly once.

use super::id::JobRef;
use super::{config, escape, exit, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Audit, Drift};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
    /// Do not count the rows of the source, which may take long; the verdict is then at best CANNOT BE JUDGED
    #[arg(long)]
    no_source: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let audit = engine.audit_with(args.id.find(&engine).await?, !args.no_source).await?;
    if args.json {
        print::json(&audit)?
    } else {
        show(&audit)
    }
    Ok(if audit.is_proven() { ExitCode::SUCCESS } else { exit::failed() })
}

/// Prints the audit in a few lines.
pub(super) fn show(audit: &Audit) {
    let (number, count) = (print::number, print::count);
    let counts = audit.counts;
    println!("{}  job {}", audit.verdict.as_str(), audit.job_id);
    println!(
        "  {} in {}: {} planned",
        count(audit.chunks, "chunk"),
        count(audit.segments.saturating_sub(1).max(1) as i64, "segment"),
        count(audit.planned, "item")
    );
    println!(
        "  {} read = {} processed + {} skipped + {}",
        count(counts.read, "row"),
        number(counts.processed),
        number(counts.skipped),
        count(counts.dead, "dead letter")
    );
    if audit.left > 0 {
        println!(
            "  {} are no longer in the source because the job processed them",
            count(audit.left, "row")
        );
    }
    match audit.drift {
        Some(Drift { appeared: 0, disappeared: 0, .. }) => {
            println!("  no drift: no row was inserted, deleted or moved since planning");
        }
        Some(Drift { appeared, disappeared, .. }) => println!(
            "  drift since planning: {} appeared, {} disappeared",
            count(appeared, "row"),
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
