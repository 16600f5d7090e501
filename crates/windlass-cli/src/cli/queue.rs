//! `--queue`: work on AWS through an SQS queue, without a store.

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use uuid::Uuid;
use windlass::{DeadLetterFilter, JobId, Request};

/// An operation on a queue.
#[cfg_attr(not(feature = "aws"), allow(dead_code, reason = "built to be refused"))]
pub(super) enum Ask {
    /// Process its messages until stopped.
    Work {
        /// Batches in progress at once.
        slots: usize,
        /// The most messages of a batch.
        batch_size: Option<u8>,
    },
    /// Send the records of a request to it.
    Enqueue { request: Box<Request>, json: bool },
    /// Show the progress of a job.
    Job { id: JobId, json: bool },
    /// List its dead letters.
    List { filter: DeadLetterFilter, json: bool },
    /// Show one of its dead letters.
    Show { id: Uuid, json: bool },
    /// Write its dead letters to a file or to standard output.
    Export { filter: DeadLetterFilter, to: Option<PathBuf> },
    /// Send its dead letters back to their queue.
    Redrive { filter: DeadLetterFilter, to: Option<String>, rate: Option<u32>, json: bool },
    /// Delete dead letters.
    Ignore { filter: DeadLetterFilter, json: bool },
}

#[cfg(not(feature = "aws"))]
pub(super) async fn run(_: &str, _: Ask, _: &Path) -> Result<ExitCode> {
    anyhow::bail!(
        "--queue: this build has no support for SQS; build it with the cargo feature `aws`"
    )
}

#[cfg(feature = "aws")]
pub(super) async fn run(queue: &str, ask: Ask, config: &Path) -> Result<ExitCode> {
    sqs::run(queue, ask, config).await
}

#[cfg(feature = "aws")]
mod sqs {
    use super::super::progress::Interrupt;
    use super::super::{config, print, queue_job, queue_letters};
    use super::Ask;
    use anyhow::{Result, bail};
    use serde_json::json;
    use std::path::Path;
    use std::process::ExitCode;
    use windlass::Config;
    use windlass_aws::{Events, Process, Queue, Start, Steps, Worker};

    pub(super) async fn run(queue: &str, ask: Ask, config: &Path) -> Result<ExitCode> {
        let config = config::config(config)?;
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem.into());
        }
        let settings = windlass_aws::environment().await?;
        let queue = Queue::open(&settings, queue).await?;
        let bus = std::env::var("EVENT_BUS_NAME").ok();
        let events = bus.map(|bus| Events::new(&settings, bus));
        match ask {
            Ask::Work { slots, batch_size } => {
                work(config, queue, events, slots, batch_size).await?;
            }
            Ask::Enqueue { request, json } => {
                if !windlass_aws::processing_enabled() {
                    bail!("nothing is enqueued: PROCESSING_ENABLED is false");
                }
                let start = Start::new(config, queue);
                let start = events.into_iter().fold(start, Start::announcing);
                let loaded = start.enqueue_all(*request).await?;
                if json {
                    print::json(&json!({"jobId": loaded.job, "itemsEnqueued": loaded.items}))?;
                } else {
                    println!("{}", loaded.job);
                    eprintln!("{} enqueued", print::count(loaded.items as i64, "item"));
                }
            }
            Ask::Job { id, json } => queue_job::show(config, &queue, id, json).await?,
            Ask::List { filter, json } => {
                queue_letters::list(&config, &queue, &filter, json).await?;
            }
            Ask::Show { id, json } => queue_letters::show(&config, &queue, id, json).await?,
            Ask::Export { filter, to } => {
                queue_letters::export(&config, &queue, &filter, to.as_deref()).await?;
            }
            Ask::Redrive { filter, to, rate, json } => {
                let to = match to {
                    Some(to) => Queue::open(&settings, &to).await?,
                    None => queue.source().await?,
                };
                queue_letters::redrive(&config, &queue, &filter, &to, rate, json).await?;
            }
            Ask::Ignore { filter, json } => {
                queue_letters::ignore(&config, &queue, &filter, json).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn work(
        config: Config,
        queue: Queue,
        events: Option<Events>,
        slots: usize,
        batch_size: Option<u8>,
    ) -> Result<()> {
        let mut interrupt = Interrupt::listen()?;
        if !windlass_aws::processing_enabled() {
            eprintln!("PROCESSING_ENABLED is false: no message is received");
            interrupt.wait().await;
            return Ok(());
        }
        let dead_letters = queue.dead_letter_queue().await?;
        let process = Process::new(config, Steps::default());
        let process = dead_letters.into_iter().fold(process, Process::with_dead_letters);
        let process = events.into_iter().fold(process, Process::with_events);
        let count = print::count(slots as i64, "slot");
        eprintln!("processing {} with {count}; stop with Ctrl-C or SIGTERM", queue.url());
        let (worker, handle) = Worker::new(process, queue, slots);
        let size = batch_size.map_or(windlass_aws::MAX_BATCH_SIZE, usize::from);
        let mut working = tokio::spawn(worker.with_batch_size(size).run());
        tokio::select! {
            ended = &mut working => return Ok(ended??),
            () = interrupt.wait() => {}
        }
        eprintln!("stopping: no new message is received; messages in progress finish");
        handle.shutdown();
        Ok(working.await??)
    }
}
