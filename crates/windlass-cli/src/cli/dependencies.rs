//! `windlass dependencies`: which jobs run after which, by rule or by request.

use super::id::JobRef;
use super::{config, escape, print};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Engine, Job, JobId};
use windlass_core::{Dependency, JobStatus};
use windlass_store::LinkedJob;

#[derive(clap::Args)]
#[command(
    after_help = "Rules are `[[dependencies]]` in windlass.toml; a single job can wait with `--after ID`.

Examples:
  windlass dependencies        the rules, and the jobs they wait for
  windlass dependencies ID     the parents and the dependents of a job"
)]
pub(super) struct Args {
    /// A job; all rules by default
    id: Option<JobRef>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    let engine = config::engine(config).await?;
    match &args.id {
        Some(id) => show(&engine, id.find(&engine).await?, args.json).await?,
        None => list(&engine, args.json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the parents and the dependents of a job below its summary.
pub(super) async fn beside(engine: &Engine, job: &Job) -> Result<()> {
    let graph = engine.graph(job.id).await?;
    let parents = graph.iter().find(|linked| linked.id == job.id).map(|linked| &linked.after);
    for linked in graph.iter().filter(|linked| parents.is_some_and(|ids| ids.contains(&linked.id)))
    {
        println!("  after   {}", line(linked));
    }
    for linked in graph.iter().filter(|linked| linked.after.contains(&job.id)) {
        println!("  then    {}", line(linked));
    }
    Ok(())
}

async fn show(engine: &Engine, id: JobId, as_json: bool) -> Result<()> {
    engine.job(id).await?;
    let graph = engine.graph(id).await?;
    if as_json {
        return print::json(&graph);
    }
    let mut table = print::table(&["ID", "TYPE", "STATUS", "BY", "AFTER"]);
    for linked in &graph {
        let after: Vec<_> = linked.after.iter().map(|id| print::id(*id)).collect();
        table.add_row([
            print::id(linked.id),
            linked.job_type.clone(),
            print::status(linked.status),
            linked.submitted_by.clone(),
            after.join(", "),
        ]);
    }
    println!("{table}");
    Ok(())
}

async fn list(engine: &Engine, as_json: bool) -> Result<()> {
    let dependencies = engine.dependencies().await?;
    if as_json {
        return print::json(&dependencies);
    }
    if dependencies.rules.is_empty() {
        println!("no rules; add `[[dependencies]]` to windlass.toml");
    }
    for rule in &dependencies.rules {
        println!("{}", describe(rule));
    }
    for join_point in &dependencies.waiting {
        let missing = |job_type: &&String| {
            let here = join_point.arrived.arrived().get(*job_type);
            here.is_none_or(|arrival| arrival.status != JobStatus::Completed)
        };
        let missing: Vec<_> = join_point.rule.after.iter().filter(missing).collect();
        println!("\n{} waits for its parents for {}:", join_point.rule.job, join_point.agreed);
        for (job_type, arrival) in join_point.arrived.arrived() {
            println!("  ended    {job_type}  {}  {}", print::status(arrival.status), arrival.job);
        }
        for job_type in missing {
            println!("  missing  {job_type}");
        }
    }
    for due in &dependencies.due {
        let why = due.error.as_deref().unwrap_or("due now");
        println!("\n{} is not submitted yet: {}", due.request.job_type, escape::indented(why, 2));
    }
    Ok(())
}

/// A rule in one line.
pub(super) fn describe(rule: &Dependency) -> String {
    let matched = match rule.matched.as_slice() {
        [] => String::new(),
        names => format!(", for equal {}", names.join(", ")),
    };
    let on_failed = rule.on_failed.as_str();
    format!(
        "{} runs after {}{matched} (on_failed = {on_failed})",
        rule.job,
        rule.after.join(" and ")
    )
}

fn line(linked: &LinkedJob) -> String {
    format!("{}  {}  {}", linked.id, print::status(linked.status), linked.job_type)
}
