//! `windlass worker`: works the queue until stopped.

use super::progress::Interrupt;
use super::{config, queue, run};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{JobId, Options, Worker};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass worker                    work every job, on this machine and any other
  windlass worker --job ID           go on with one job, to its end
  windlass worker --queue sqs://work  work the messages of a queue on AWS, without a store")]
pub(super) struct Args {
    /// Chunks at work at once in this process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Only this job; leave when it has ended
    #[arg(long, value_name = "ID")]
    job: Option<JobId>,
    /// Work the messages of this queue, sqs://NAME or its URL
    #[arg(long, value_name = "QUEUE", conflicts_with = "job")]
    queue: Option<String>,
    /// With --job: print the job as JSON at the end
    #[arg(long, requires = "job")]
    json: bool,
    #[command(flatten)]
    restore: config::Restore,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    if let Some(queue) = &args.queue {
        let slots = args.concurrency.map_or(Options::default().slots, usize::from);
        return queue::run(queue, queue::Ask::Work { slots }, config).await;
    }
    let engine = config::engine(config).await?;
    args.restore.check(&engine).await?;
    let mut interrupt = Interrupt::listen()?;
    let slots = args.concurrency.map(usize::from);
    if let Some(job) = args.job {
        engine.job(job).await?;
        return run::work_to_end(&engine, job, slots, args.json, interrupt).await;
    }
    for name in engine.config().connections.keys() {
        if let Err(problem) = engine.connection(name) {
            eprintln!("warning: jobs on connection {name} are left to others: {problem}");
        }
    }
    let defaults = Options::default();
    let slots = slots.unwrap_or(defaults.slots);
    eprintln!("working with {slots} slots as {}; Ctrl-C or SIGTERM stops", defaults.name);
    let (worker, handle) = Worker::new(engine, Options { slots, ..defaults });
    let working = tokio::spawn(worker.run());
    interrupt.wait().await;
    eprintln!("stopping: nothing new is claimed, commits in flight finish");
    handle.shutdown();
    let tally = working.await?;
    eprintln!(
        "stopped: {} chunks were completed here, {} handed back, {} failed, {} lost to other workers",
        tally.completed, tally.handed_back, tally.failed, tally.lost
    );
    Ok(ExitCode::SUCCESS)
}
