//! `windlass dead --queue`: the messages of a dead-letter queue.

use super::{escape, print, private};
use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::Path;
use uuid::Uuid;
use windlass::{Config, DeadLetterFilter};
use windlass_aws::dead_letters::{self, Which};
use windlass_aws::{Delivery, Queue};

pub(super) async fn list(
    config: &Config,
    queue: &Queue,
    filter: &DeadLetterFilter,
    json: bool,
) -> Result<()> {
    let found = dead_letters::list(queue, &which(config, filter), filter.limit as usize).await?;
    if json {
        let letters: Vec<Json> = found.iter().map(to_json).collect();
        return print::json(&letters);
    }
    if found.is_empty() {
        println!("no dead letters");
        return Ok(());
    }
    let mut table = print::table(&["ID", "TYPE", "KEY", "JOB", "ATTEMPTS", "SENT", "ERROR"]);
    for letter in &found {
        table.add_row([
            letter.id.clone(),
            dead_letters::type_of(letter),
            print::short(&dead_letters::keys_of(letter, config), 60),
            letter.job().to_string(),
            attempts(letter).to_string(),
            sent(letter).map(print::time).unwrap_or_default(),
            print::short(&print::headline(error(letter)), 80),
        ]);
    }
    println!("{table}");
    Ok(())
}

pub(super) async fn show(config: &Config, queue: &Queue, id: Uuid, json: bool) -> Result<()> {
    let which = Which { ids: vec![id.to_string()], ..Which::default() };
    let found = dead_letters::list(queue, &which, 1).await?;
    let Some(letter) = found.first() else {
        bail!("there is no dead letter {id} in {}", queue.url());
    };
    if json {
        return print::json(&to_json(letter));
    }
    let (kind, keys) = (dead_letters::type_of(letter), dead_letters::keys_of(letter, config));
    println!("{}  {}", escape::one_line(&kind), escape::one_line(&keys));
    println!("  error     {}", escape::indented(error(letter), 12));
    println!("  attempts  {}", attempts(letter));
    if let Some(failed) = failed_at(letter).or(sent(letter)) {
        println!("  failed    {}", print::time(failed));
    }
    println!("  job       {}", letter.job());
    if let Ok(params) = letter.params()
        && !params.is_empty()
    {
        println!("  params    {}", escape::one_line(&json!(params).to_string()));
    }
    println!("  message   {}", escape::one_line(&letter.body));
    Ok(())
}

pub(super) async fn export(
    config: &Config,
    queue: &Queue,
    filter: &DeadLetterFilter,
    to: Option<&Path>,
) -> Result<()> {
    let mut out: Box<dyn Write> = match to {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let file = private::create(path).with_context(|| format!("--to {}", path.display()))?;
            Box::new(std::io::BufWriter::new(file))
        }
    };
    let found = dead_letters::list(queue, &which(config, filter), usize::MAX).await?;
    for letter in &found {
        writeln!(out, "{}", escape::json(&to_json(letter).to_string()))?;
    }
    out.flush()?;
    eprintln!("{} written", letters(found.len()));
    Ok(())
}

pub(super) async fn redrive(
    config: &Config,
    queue: &Queue,
    filter: &DeadLetterFilter,
    to: &Queue,
    rate: Option<u32>,
    json: bool,
) -> Result<()> {
    let redriven = dead_letters::redrive(queue, to, &which(config, filter), rate).await?;
    match json {
        true => print::json(&json!({"redriven": redriven, "to": to.url()}))?,
        false => println!("{} sent to {}", letters(redriven), to.url()),
    }
    Ok(())
}

pub(super) async fn ignore(
    config: &Config,
    queue: &Queue,
    filter: &DeadLetterFilter,
    json: bool,
) -> Result<()> {
    let ignored = dead_letters::ignore(queue, &which(config, filter)).await?;
    match json {
        true => print::json(&json!({"ignored": ignored}))?,
        false => println!("{} deleted", letters(ignored)),
    }
    Ok(())
}

fn letters(count: usize) -> String {
    print::count(count.try_into().unwrap_or(i64::MAX), "dead letter")
}

fn to_json(letter: &Delivery) -> Json {
    let body = serde_json::from_str(&letter.body).unwrap_or(Json::from(letter.body.as_str()));
    json!({"id": letter.id, "jobId": letter.job(), "message": body, "error": letter.error(),
           "attempts": attempts(letter), "failedAt": failed_at(letter),
           "receives": letter.receives, "sentAt": sent(letter)})
}

/// The error. SQS moves a message whose last delivery was not answered, and knows no error.
fn error(letter: &Delivery) -> &str {
    letter.error().unwrap_or("unknown: its last delivery was not answered, so SQS moved it")
}

/// How often it was delivered before it was a dead letter.
fn attempts(letter: &Delivery) -> u32 {
    letter.attempts().unwrap_or(letter.receives)
}

fn failed_at(letter: &Delivery) -> Option<DateTime<Utc>> {
    letter.failed_at()?.parse().ok()
}

fn sent(letter: &Delivery) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(letter.sent as i64)
}

/// The filter for a queue.
fn which(config: &Config, filter: &DeadLetterFilter) -> Which {
    let named = filter.job_type.as_ref();
    let message_type = |named: &String| {
        let job_type = config.jobs.get(named);
        job_type.map_or_else(|| named.clone(), |job_type| job_type.message_type().to_owned())
    };
    Which {
        ids: filter.ids.iter().map(ToString::to_string).collect(),
        job: filter.job,
        message_types: named.map(message_type).into_iter().collect(),
        older_than: filter.older_than,
        error: filter.error.clone(),
    }
}
