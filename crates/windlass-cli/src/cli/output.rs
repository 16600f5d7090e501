//! `windlass output`: the rows that the items of a job emitted.

use super::id::JobRef;
use super::{config, escape};
use anyhow::Result;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use windlass::{Engine, JobId, JobStatus};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass output 0198… > rows.jsonl
  windlass output 0198… --json | jq 'map(.amount) | add'")]
pub(super) struct Args {
    /// The job: its id, a unique prefix, its last eight characters, or `last`
    id: JobRef,
    /// Print one JSON array instead of a line per row
    #[arg(long)]
    json: bool,
}

/// Rows fetched at once; bounds memory.
const PAGE_ROWS: u32 = 1000;

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    let id = args.id.find(&engine).await?;
    let job = engine.job(id).await?;
    match print(&engine, id, args.json).await {
        // The reader closed the pipe.
        Err(error) if is_broken_pipe(&error) => return Ok(ExitCode::SUCCESS),
        printed => printed?,
    }
    if engine.store().segments(id).await?.is_empty() {
        eprintln!("the output of the job is pruned");
    }
    let snapshot = engine.store().snapshot(id).await?;
    let is_redrive = snapshot.is_some_and(|snapshot| snapshot.root != snapshot.id);
    match job.status {
        JobStatus::Completed => {}
        JobStatus::Cancelled if is_redrive => {
            eprintln!("the job is CANCELLED: these committed rows belong to the original job");
        }
        JobStatus::Cancelled => eprintln!("the job is CANCELLED: its output is deleted"),
        status => eprintln!("the job is {status}: these are the rows committed so far"),
    }
    Ok(ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

async fn print(engine: &Engine, id: JobId, json: bool) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut after = windlass::EmittedCursor::default();
    let mut separator = if json { "[" } else { "" };
    loop {
        let page = engine.output(id, &after, PAGE_ROWS).await?;
        let Some(last) = page.last() else { break };
        after = last.cursor.clone();
        for row in page {
            write!(out, "{separator}{}", escape::json(&row.fields.to_string()))?;
            separator = if json { ",\n" } else { "\n" };
        }
    }
    match (json, separator) {
        (true, "[") => writeln!(out, "[]")?,
        (true, _) => writeln!(out, "]")?,
        (false, "") => {}
        (false, _) => writeln!(out)?,
    }
    out.flush()?;
    Ok(())
}
