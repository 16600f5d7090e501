//! `--queue`: work on AWS through an SQS queue, without a store.

use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use windlass::{DeadLetterFilter, Request};

/// An operation on a queue.
#[cfg_attr(not(feature = "aws"), allow(dead_code, reason = "built to be refused"))]
pub(super) enum Ask {
    /// Process its messages until stopped.
    Work {
        /// Batches in progress at once.
        slots: usize,
    },
    /// Send the records of a request to it.
    Enqueue { request: Box<Request>, json: bool },
    /// List its dead letters.
    List { filter: DeadLetterFilter, json: bool },
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
    use super::super::{config, print};
    use super::{Ask, DeadLetterFilter};
    use anyhow::{Result, bail};
    use chrono::{DateTime, Utc};
    use serde_json::{Value as Json, json};
    use std::path::Path;
    use std::process::ExitCode;
    use windlass::Config;
    use windlass_aws::dead_letters::{self, Which};
    use windlass_aws::{Delivery, Process, Queue, Start, Steps, Worker};

    pub(super) async fn run(queue: &str, ask: Ask, config: &Path) -> Result<ExitCode> {
        let config = config::config(config)?;
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem.into());
        }
        let settings = windlass_aws::environment().await?;
        let queue = Queue::open(&settings, queue).await?;
        match ask {
            Ask::Work { slots } => work(config, queue, slots).await?,
            Ask::Enqueue { request, json } => {
                let loaded = Start::new(config, queue).enqueue_all(*request).await?;
                if json {
                    print::json(&json!({"jobId": loaded.job, "itemsEnqueued": loaded.items}))?;
                } else {
                    println!("{}", loaded.job);
                    eprintln!("{} enqueued", print::count(loaded.items as i64, "item"));
                }
            }
            Ask::List { filter, json } => list(&config, &queue, &filter, json).await?,
            Ask::Redrive { filter, to, rate, json } => {
                let to = match to {
                    Some(to) => Queue::open(&settings, &to).await?,
                    None => queue.source().await?,
                };
                let which = which(&config, &filter)?;
                let redriven = dead_letters::redrive(&queue, &to, &which, rate).await?;
                match json {
                    true => print::json(&json!({"redriven": redriven, "to": to.url()}))?,
                    false => println!("{} sent to {}", letters(redriven), to.url()),
                }
            }
            Ask::Ignore { filter, json } => {
                let ignored = dead_letters::ignore(&queue, &which(&config, &filter)?).await?;
                match json {
                    true => print::json(&json!({"ignored": ignored}))?,
                    false => println!("{} deleted", letters(ignored)),
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn work(config: Config, queue: Queue, slots: usize) -> Result<()> {
        let mut interrupt = Interrupt::listen()?;
        if !windlass_aws::processing_enabled() {
            eprintln!("PROCESSING_ENABLED is false: no message is received");
            interrupt.wait().await;
            return Ok(());
        }
        let count = print::count(slots as i64, "slot");
        eprintln!("processing {} with {count}; stop with Ctrl-C or SIGTERM", queue.url());
        let (worker, handle) = Worker::new(Process::new(config, Steps::default()), queue, slots);
        let mut working = tokio::spawn(worker.run());
        tokio::select! {
            ended = &mut working => return Ok(ended??),
            () = interrupt.wait() => {}
        }
        eprintln!("stopping: no new message is received; messages in progress finish");
        handle.shutdown();
        Ok(working.await??)
    }

    async fn list(
        config: &Config,
        queue: &Queue,
        filter: &DeadLetterFilter,
        json: bool,
    ) -> Result<()> {
        let which = which(config, filter)?;
        let found = dead_letters::list(queue, &which, filter.limit as usize).await?;
        if json {
            let letters: Vec<Json> = found.iter().map(letter).collect();
            return print::json(&letters);
        }
        if found.is_empty() {
            println!("no dead letters");
            return Ok(());
        }
        let mut table = print::table(&["ID", "TYPE", "KEY", "JOB", "RECEIVES", "SENT"]);
        for letter in &found {
            table.add_row([
                letter.id.clone(),
                dead_letters::type_of(letter),
                print::short(&dead_letters::keys_of(letter, config), 60),
                letter.job().to_string(),
                letter.receives.to_string(),
                sent(letter).map(print::time).unwrap_or_default(),
            ]);
        }
        println!("{table}");
        println!("the errors are in the log of the process that tried them");
        Ok(())
    }

    fn letters(count: impl TryInto<i64>) -> String {
        print::count(count.try_into().unwrap_or(i64::MAX), "dead letter")
    }

    fn letter(letter: &Delivery) -> Json {
        let body = serde_json::from_str(&letter.body).unwrap_or(Json::from(letter.body.as_str()));
        json!({"id": letter.id, "jobId": letter.job(), "message": body,
               "receives": letter.receives, "sentAt": sent(letter)})
    }

    fn sent(letter: &Delivery) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(letter.sent as i64)
    }

    /// The part of a filter that a queue supports.
    fn which(config: &Config, filter: &DeadLetterFilter) -> Result<Which> {
        if filter.error.is_some() {
            bail!(
                "--error: a queue does not store errors; they are in the log of the process that tried the items"
            );
        }
        let named = filter.job_type.as_ref();
        let message_type = |named: &String| {
            let job_type = config.jobs.get(named);
            job_type.map_or_else(|| named.clone(), |job_type| job_type.message_type().to_owned())
        };
        Ok(Which {
            ids: filter.ids.iter().map(ToString::to_string).collect(),
            job: filter.job,
            message_types: named.map(message_type).into_iter().collect(),
            older_than: filter.older_than,
        })
    }
}
