//! `windlass dead`: lists, redrives, ignores and exports dead letters.

use super::queue::Ask;
use super::{config, escape, print, private, queue};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use uuid::Uuid;
use windlass::{DeadLetter, DeadLetterFilter, DeadLetterStatus, Engine, JobId};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List dead letters, newest first
    List(ListArgs),
    /// Show a dead letter with its record
    Show(ShowArgs),
    /// Process the items again: a new job on exactly those keys, with the same identity
    Redrive(RedriveArgs),
    /// Mark dead letters as ignored
    Ignore(ActArgs),
    /// Write dead letters to a file, one JSON document per line
    Export(ExportArgs),
}

#[derive(clap::Args)]
pub(super) struct FilterArgs {
    /// Only of this job
    #[arg(long, value_name = "ID")]
    job: Option<JobId>,
    /// Only of this job type
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Only with this text in the error
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only older than this: 2h, 7days
    #[arg(long, value_name = "AGE", value_parser = humantime::parse_duration)]
    older_than: Option<std::time::Duration>,
}

impl FilterArgs {
    fn filter(self) -> DeadLetterFilter {
        DeadLetterFilter {
            job: self.job,
            job_type: self.r#type,
            error: self.error,
            older_than: self.older_than,
            ..DeadLetterFilter::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.job.is_none()
            && self.r#type.is_none()
            && self.error.is_none()
            && self.older_than.is_none()
    }
}

#[derive(clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// In this dead-letter queue, sqs://NAME or its URL
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["status", "before"])]
    queue: Option<String>,
    /// new, reprocessed or ignored
    #[arg(long)]
    status: Option<DeadLetterStatus>,
    /// Maximum number of dead letters to list
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Only dead letters older than this one, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<Uuid>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ShowArgs {
    /// The id of the dead letter
    id: Uuid,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ActArgs {
    /// The ids of the dead letters
    ids: Vec<Uuid>,
    #[command(flatten)]
    filter: FilterArgs,
    /// All dead letters with the status `new`
    #[arg(long)]
    all: bool,
    /// In this dead-letter queue, sqs://NAME or its URL
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    act: ActArgs,
    /// With --queue: the queue to send them to, if not the one they came from
    #[arg(long, value_name = "QUEUE", requires = "queue")]
    to: Option<String>,
    /// With --queue: the most messages per second
    #[arg(long, value_name = "N", requires = "queue", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
}

impl ActArgs {
    fn filter(self) -> Result<DeadLetterFilter> {
        if self.ids.is_empty() && self.filter.is_empty() && !self.all {
            bail!(
                "select dead letters by id, --job, --type, --error or --older-than, or give --all"
            );
        }
        let status = Some(DeadLetterStatus::New);
        Ok(DeadLetterFilter { ids: self.ids, status, ..self.filter.filter() })
    }
}

#[derive(clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// new, reprocessed or ignored
    #[arg(long)]
    status: Option<DeadLetterStatus>,
    /// The file to write; standard output by default
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) async fn run(command: Command, config: &Path) -> Result<ExitCode> {
    let command = match on_queue(command)? {
        Asked::Queue(queue, ask) => return queue::run(&queue, ask, config).await,
        Asked::Store(command) => command,
    };
    let engine = config::engine(config).await?;
    match command {
        Command::List(args) => list(args, &engine).await?,
        Command::Show(args) => show(args, &engine).await?,
        Command::Redrive(args) => redrive(args.act, &engine).await?,
        Command::Ignore(args) => ignore(args, &engine).await?,
        Command::Export(args) => export(args, &engine).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whom a command is for.
enum Asked {
    Queue(String, Ask),
    Store(Command),
}

fn on_queue(command: Command) -> Result<Asked> {
    Ok(match command {
        Command::List(ListArgs { queue: Some(queue), filter, limit, json, .. }) => {
            let filter = DeadLetterFilter { limit, ..filter.filter() };
            Asked::Queue(queue, Ask::List { filter, json })
        }
        Command::Redrive(RedriveArgs { mut act, to, rate }) => match act.queue.take() {
            Some(queue) => {
                let json = act.json;
                let ask = Ask::Redrive { filter: act.filter()?, to, rate, json };
                Asked::Queue(queue, ask)
            }
            None => Asked::Store(Command::Redrive(RedriveArgs { act, to, rate })),
        },
        Command::Ignore(mut act) => match act.queue.take() {
            Some(queue) => {
                let json = act.json;
                Asked::Queue(queue, Ask::Ignore { filter: act.filter()?, json })
            }
            None => Asked::Store(Command::Ignore(act)),
        },
        other => Asked::Store(other),
    })
}

async fn list(args: ListArgs, engine: &Engine) -> Result<()> {
    let filter = DeadLetterFilter {
        status: args.status,
        limit: args.limit,
        before: args.before,
        ..args.filter.filter()
    };
    let letters = engine.store().dead_letters(&filter).await?;
    if args.json {
        return print::json(&letters);
    }
    if letters.is_empty() {
        println!("no dead letters");
        if let Some(job) = filter.job
            && let job = engine.job(job).await?
            && job.items.dead > 0
            && !job.status.is_final()
        {
            println!("chunks in progress have some; they are listed when the chunks end");
        }
        return Ok(());
    }
    let mut table = print::table(&["ID", "TYPE", "KEY", "STATUS", "ATTEMPTS", "FAILED", "ERROR"]);
    for letter in &letters {
        table.add_row([
            letter.id.to_string(),
            letter.job_type.clone(),
            print::scalar(&letter.key),
            status(letter),
            letter.attempts.to_string(),
            print::time(letter.created_at),
            letter.error.clone(),
        ]);
    }
    println!("{table}");
    if letters.len() == args.limit as usize
        && let Some(last) = letters.last()
    {
        println!("more: --before {}", last.id);
    }
    Ok(())
}

/// The status, with a redrive in progress.
fn status(letter: &DeadLetter) -> String {
    match letter.redrive_job {
        Some(_) if letter.status == DeadLetterStatus::New => "new (redriving)".to_owned(),
        _ => letter.status.to_string(),
    }
}

async fn show(args: ShowArgs, engine: &Engine) -> Result<()> {
    let filter = DeadLetterFilter { ids: vec![args.id], limit: 1, ..DeadLetterFilter::default() };
    let letters = engine.store().dead_letters(&filter).await?;
    let letter = letters.first().with_context(|| format!("there is no dead letter {}", args.id))?;
    if args.json {
        return print::json(letter);
    }
    println!("{}  {}  {}", status(letter), letter.job_type, print::scalar(&letter.key));
    println!("  error     {}", escape::indented(&letter.error, 12));
    println!("  attempts  {}", letter.attempts);
    println!("  failed    {}", print::time(letter.created_at));
    println!("  job       {}, chunk {}", letter.job_id, letter.chunk);
    if let Some(job) = letter.redrive_job {
        println!("  redrive   {job}");
    }
    if !letter.context.is_null() {
        println!("  context   {}", letter.context);
    }
    // Where the key is not unique, the dead letter holds all rows of the key.
    let alone = std::slice::from_ref(&letter.record);
    for record in letter.record.as_array().map_or(alone, Vec::as_slice) {
        println!("  record");
        for (column, value) in record.as_object().into_iter().flatten() {
            println!("    {}: {}", escape::one_line(column), print::scalar(value));
        }
    }
    Ok(())
}

async fn redrive(args: ActArgs, engine: &Engine) -> Result<()> {
    let json = args.json;
    let redriven = engine.redrive(&args.filter()?).await?;
    if json {
        return print::json(&redriven);
    }
    if redriven.is_empty() {
        println!(
            "nothing to redrive: the matching dead letters are reprocessed, ignored or already being redriven"
        );
    }
    for job in &redriven {
        let letters = print::count(job.letters as i64, "dead letter");
        println!("{}  redrives {letters} of job {}", job.job_id, job.original_job);
    }
    if let Some(job) = redriven.first() {
        eprintln!(
            "a running worker will process it; if none runs: windlass worker --job {}",
            job.job_id
        );
    }
    Ok(())
}

async fn ignore(args: ActArgs, engine: &Engine) -> Result<()> {
    let json = args.json;
    let ignored =
        engine.store().mark_dead_letters(&args.filter()?, DeadLetterStatus::Ignored).await?;
    if json {
        return print::json(&serde_json::json!({"ignored": ignored}));
    }
    println!("{} ignored", print::count(ignored as i64, "dead letter"));
    Ok(())
}

async fn export(args: ExportArgs, engine: &Engine) -> Result<()> {
    let mut out: Box<dyn Write> = match &args.to {
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let file = private::create(path).with_context(|| format!("--to {}", path.display()))?;
            Box::new(std::io::BufWriter::new(file))
        }
    };
    let mut filter = DeadLetterFilter { status: args.status, limit: 500, ..args.filter.filter() };
    let mut count = 0;
    loop {
        let page = engine.store().dead_letters(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        for letter in &page {
            writeln!(out, "{}", escape::json(&serde_json::to_string(letter)?))?;
            count += 1;
        }
    }
    out.flush()?;
    eprintln!("{} written", print::count(count, "dead letter"));
    Ok(())
}
