//! `windlass worker`: runs jobs until stopped.

use super::id::JobRef;
use super::progress::Interrupt;
use super::{config, exit, print, queue, run};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{Options, Worker};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  windlass worker                     run every job; start it on any number of machines
  windlass worker --job ID            run one job until it ends
  windlass worker --queue sqs://work  process the messages of an SQS queue, without a store")]
pub(super) struct Args {
    /// Chunks in progress at once in this process
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: Option<u16>,
    /// Run only this job, and exit when it has ended
    #[arg(long, value_name = "ID")]
    job: Option<JobRef>,
    /// Process the messages of this queue, sqs://NAME or its URL
    #[arg(long, value_name = "QUEUE", conflicts_with = "job")]
    queue: Option<String>,
    /// With --queue: the most messages that a slot processes at a time
    #[arg(long, value_name = "N", requires = "queue", value_parser = clap::value_parser!(u8).range(1..=10))]
    batch_size: Option<u8>,
    /// With --job: print the job as JSON at the end
    #[arg(long, requires = "job")]
    json: bool,
    #[command(flatten)]
    dead_letters: exit::DeadLetters,
    #[command(flatten)]
    restore: config::Restore,
}

pub(super) async fn run(args: Args, config: &Path) -> Result<ExitCode> {
    if let Some(queue) = &args.queue {
        let slots = args.concurrency.map_or(Options::default().slots, usize::from);
        let ask = queue::Ask::Work { slots, batch_size: args.batch_size };
        return queue::run(queue, ask, config).await;
    }
    let engine = config::engine(config).await?;
    args.restore.check(&engine).await?;
    let mut interrupt = Interrupt::listen()?;
    let slots = args.concurrency.map(usize::from);
    if let Some(job) = &args.job {
        let job = job.find(&engine).await?;
        engine.job(job).await?;
        let ending = run::Ending { json: args.json, dead_letters: args.dead_letters };
        return run::work_to_end(&engine, job, slots, ending, interrupt).await;
    }
    for name in engine.config().connections.keys() {
        if let Err(problem) = engine.connection(name) {
            eprintln!("warning: this process cannot run jobs on connection {name}: {problem}");
        }
    }
    let defaults = Options::default();
    let slots = slots.unwrap_or(defaults.slots);
    let count = print::count(slots as i64, "slot");
    eprintln!("worker {} with {count}; stop with Ctrl-C or SIGTERM", defaults.name);
    let (worker, handle) = Worker::new(engine, defaults.with_slots(slots));
    let working = tokio::spawn(worker.run());
    interrupt.wait().await;
    eprintln!("stopping: no new chunk is leased; commits in progress finish");
    handle.shutdown();
    let stats = working.await?;
    eprintln!(
        "stopped: {} completed, {} handed back, {} failed, {} taken over by other workers",
        print::count(stats.completed as i64, "chunk"),
        stats.handed_back,
        stats.failed,
        stats.lost
    );
    Ok(ExitCode::SUCCESS)
}
