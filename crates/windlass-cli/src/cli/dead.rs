//! `windlass dead`: lists, redrives, ignores and exports dead letters.

use super::id::{JobRef, LetterRef};
use super::queue::Ask;
use super::{config, escape, print, private, queue};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windlass::{DeadLetter, DeadLetterFilter, DeadLetterStatus, Engine};
use windlass_store::DeadLetterGroup;

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
    job: Option<JobRef>,
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
    /// The filter, with the ids that the store finds; without a store they must be whole.
    async fn filter(self, engine: Option<&Engine>) -> Result<DeadLetterFilter> {
        let job = match (&self.job, engine) {
            (Some(job), Some(engine)) => Some(job.find(engine).await?),
            (Some(job), None) => Some(job.whole()?),
            (None, _) => None,
        };
        Ok(DeadLetterFilter {
            job,
            job_type: self.r#type,
            error: self.error,
            older_than: self.older_than,
            ..DeadLetterFilter::default()
        })
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
    before: Option<LetterRef>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ShowArgs {
    /// The dead letter: its id, a unique prefix, or its last eight characters
    id: LetterRef,
    /// In this dead-letter queue, sqs://NAME or its URL; the id must be whole
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ActArgs {
    /// The ids of the dead letters
    ids: Vec<LetterRef>,
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
    async fn filter(self, engine: Option<&Engine>) -> Result<DeadLetterFilter> {
        if self.ids.is_empty() && self.filter.is_empty() && !self.all {
            bail!(
                "select dead letters by id, --job, --type, --error or --older-than, or give --all"
            );
        }
        let mut ids = Vec::new();
        for letter in &self.ids {
            ids.push(match engine {
                Some(engine) => letter.find(engine).await?,
                None => letter.whole()?,
            });
        }
        let status = Some(DeadLetterStatus::New);
        Ok(DeadLetterFilter { ids, status, ..self.filter.filter(engine).await? })
    }
}

#[derive(clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// From this dead-letter queue, sqs://NAME or its URL
    #[arg(long, value_name = "QUEUE", conflicts_with = "status")]
    queue: Option<String>,
    /// new, reprocessed or ignored
    #[arg(long)]
    status: Option<DeadLetterStatus>,
    /// The file to write; standard output by default
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) async fn run(command: Command, config: &Path) -> Result<ExitCode> {
    let command = match on_queue(command).await? {
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

async fn on_queue(command: Command) -> Result<Asked> {
    Ok(match command {
        Command::List(ListArgs { queue: Some(queue), filter, limit, json, .. }) => {
            let filter = DeadLetterFilter { limit, ..filter.filter(None).await? };
            Asked::Queue(queue, Ask::List { filter, json })
        }
        Command::Show(ShowArgs { queue: Some(queue), id, json }) => {
            Asked::Queue(queue, Ask::Show { id: id.whole()?, json })
        }
        Command::Export(ExportArgs { queue: Some(queue), filter, to, .. }) => {
            Asked::Queue(queue, Ask::Export { filter: filter.filter(None).await?, to })
        }
        Command::Redrive(RedriveArgs { mut act, to, rate }) => match act.queue.take() {
            Some(queue) => {
                let json = act.json;
                let ask = Ask::Redrive { filter: act.filter(None).await?, to, rate, json };
                Asked::Queue(queue, ask)
            }
            None => Asked::Store(Command::Redrive(RedriveArgs { act, to, rate })),
        },
        Command::Ignore(mut act) => match act.queue.take() {
            Some(queue) => {
                let json = act.json;
                Asked::Queue(queue, Ask::Ignore { filter: act.filter(None).await?, json })
            }
            None => Asked::Store(Command::Ignore(act)),
        },
        other => Asked::Store(other),
    })
}

async fn list(args: ListArgs, engine: &Engine) -> Result<()> {
    let before = match &args.before {
        Some(letter) => Some(letter.find(engine).await?),
        None => None,
    };
    let (status, limit) = (args.status, args.limit);
    let filter = args.filter.filter(Some(engine)).await?;
    let filter = DeadLetterFilter { status, limit, before, ..filter };
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
    let all = DeadLetterFilter { limit: MAX_GROUPS, before: None, ..filter.clone() };
    let groups = engine.store().dead_letter_groups(&all).await?;
    print_groups(&groups, &letters);
    if letters.len() == limit as usize
        && let Some(last) = letters.last()
    {
        println!("more: --before {}", print::id(last.id));
    }
    Ok(())
}

/// Groups read at most; letters of further groups are listed together.
const MAX_GROUPS: u32 = 1000;

/// Prints the letters of a page below the error that they have in common, the most frequent error first.
fn print_groups(groups: &[DeadLetterGroup], letters: &[DeadLetter]) {
    let is_in = |letter: &DeadLetter, group: &DeadLetterGroup| {
        letter.job_type == group.job_type && letter.fingerprint == group.fingerprint
    };
    for group in groups {
        let of_group: Vec<_> = letters.iter().filter(|letter| is_in(letter, group)).collect();
        let Some(first) = of_group.first() else { continue };
        let same = of_group.iter().all(|letter| letter.error == first.error);
        let error = if same { &first.error } else { &group.error };
        let total = print::count(group.letters, "dead letter");
        println!("{} of {}", total, group.job_type);
        println!("  {}", escape::indented(error, 2));
        print_letters(&of_group, !same);
    }
    let ungrouped = |letter: &&DeadLetter| !groups.iter().any(|group| is_in(letter, group));
    let rest: Vec<_> = letters.iter().filter(ungrouped).collect();
    if !rest.is_empty() {
        println!("other errors");
        print_letters(&rest, true);
    }
}

/// A table of letters, with their errors where these differ.
fn print_letters(letters: &[&DeadLetter], with_errors: bool) {
    let mut header = vec!["ID", "KEY", "STATUS", "ATTEMPTS", "FAILED"];
    header.extend(with_errors.then_some("ERROR"));
    let mut table = print::table(&header);
    for letter in letters {
        let cells = [
            print::id(letter.id),
            print::scalar(&letter.key),
            status(letter),
            letter.attempts.to_string(),
            print::short_time(letter.created_at),
        ];
        let error = with_errors.then(|| print::headline(&letter.error));
        table.add_row(cells.into_iter().chain(error));
    }
    println!("{table}");
}

/// The status, with a redrive in progress.
fn status(letter: &DeadLetter) -> String {
    match letter.redrive_job {
        Some(_) if letter.status == DeadLetterStatus::New => "new (redriving)".to_owned(),
        _ => letter.status.to_string(),
    }
}

async fn show(args: ShowArgs, engine: &Engine) -> Result<()> {
    let id = args.id.find(engine).await?;
    let filter = DeadLetterFilter { ids: vec![id], limit: 1, ..DeadLetterFilter::default() };
    let letters = engine.store().dead_letters(&filter).await?;
    let letter = letters.first().with_context(|| format!("there is no dead letter {id}"))?;
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
    let redriven = engine.redrive(&args.filter(Some(engine)).await?).await?;
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
    let filter = args.filter(Some(engine)).await?;
    let ignored = engine.store().mark_dead_letters(&filter, DeadLetterStatus::Ignored).await?;
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
    let filter = args.filter.filter(Some(engine)).await?;
    let mut filter = DeadLetterFilter { status: args.status, limit: 500, ..filter };
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
