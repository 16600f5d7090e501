//! `windlass submit`: queues a job and prints its id.

use super::request::RequestArgs;
use super::{config, print, queue};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::Submitted;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass submit REFRESH --priority 9 --param month=2025-01")]
pub(super) struct Args {
    #[command(flatten)]
    request: RequestArgs,
    /// Send the records to this queue, sqs://NAME or its URL; no store is needed
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Print the job as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    if let Some(queue) = &args.queue {
        let (request, _) = args.request.read(config, None).await?;
        let ask = queue::Ask::Enqueue { request: Box::new(request), json: args.json };
        return queue::run(queue, ask, config).await;
    }
    let engine = config::engine(config).await?;
    let (request, identity) = args.request.read(config, Some(&engine)).await?;
    let submitted = engine.submit(request, identity).await?;
    if args.json {
        print::json(&engine.job(submitted.id()).await?)?;
    } else {
        println!("{}", submitted.id());
        if let Submitted::Existing(_) = submitted {
            eprintln!(
                "the same request was submitted before with this idempotency key; this is its job"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
