//! `windlass demo`: a complete job on a database that it creates, with bad records and a concurrent
//! writer.

pub(super) mod classify;
mod writer;

use super::progress::{self, Interrupt};
use super::{audit, config, exit, print, private};
use anyhow::{Context, Result, bail, ensure};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use windlass::{DeadLetterFilter, Engine, Job, JobId, JobStatus, Options, Request, Worker};
use windlass_core::OutputKind;
use writer::{WAIT_POINTS, Writer, Written};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The folder to create it in
    #[arg(long, default_value = "windlass-demo")]
    folder: PathBuf,
    /// The number of transactions
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    transactions: u32,
}

const CONFIG: &str = include_str!("demo/windlass.toml");
const TABLE: &str = include_str!("demo/transactions.sql");
/// One record in this many is bad.
const BAD_EVERY: u32 = 142_857;

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    match show(args).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("{error}");
            Ok(exit::interrupted())
        }
        Err(error) => Err(error),
    }
}

/// The user stopped the demo while this job ran.
#[derive(Debug)]
struct Interrupted(JobId);

impl std::error::Error for Interrupted {}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.0;
        write!(f, "stopped; continue with `windlass worker --job {id}` in the folder of the demo")
    }
}

async fn show(args: Args) -> Result<()> {
    let folder = args.folder;
    let database = create(&folder, args.transactions)?;
    // The configuration names its files relative to its own folder.
    std::env::set_current_dir(&folder)?;
    let engine = config::engine(Path::new("windlass.toml")).await?;
    // One for all jobs, so that a signal between two of them is not missed.
    let mut interrupt = Interrupt::listen()?;

    say("Settling every open transaction …");
    let settled = run_job(&engine, Request::new("SETTLE"), &mut interrupt).await?;
    print::summary(&settled);

    say(
        "Records that could not be settled are dead letters with their error; they did not delay the rest:",
    );
    show_letters(&engine, &settled).await?;
    let corrected = database.execute(
        "UPDATE transactions SET amount = -amount, version = version + 1 WHERE amount < 0",
        [],
    )?;
    say(&format!(
        "{corrected} amounts corrected by hand. Now those records alone are processed again:"
    ));
    redrive(&engine, &settled, &mut interrupt).await?;

    say(
        "A function gives every record a class, one record at a time, while another program writes notes to \
         the same rows …",
    );
    let writer = Writer::start("app.db".into(), args.transactions);
    let classified = run_job(&engine, Request::new("CLASSIFY"), &mut interrupt).await;
    let written = writer.finish()?;
    let classified = classified?;
    print::summary(&classified);
    show_writes(&written, &classified, &database)?;

    say(
        "A report by branch, computed by chunk (map), added up once (reduce) and written to a file:",
    );
    let reported = run_job(&engine, Request::new("BRANCH_REPORT"), &mut interrupt).await?;
    print::summary(&reported);
    show_report(&engine, &reported).await?;

    say("The audit proves the jobs:");
    for job in [&settled, &classified, &reported] {
        let proof = engine.audit(job.id).await?;
        audit::show(&proof);
        ensure!(proof.is_proven(), "the audit should have proven the job");
    }
    show_next_steps(&folder, &settled, &reported);
    Ok(())
}

/// Says how many writes of the other program the job met, and that all of them are still there.
fn show_writes(written: &Written, job: &Job, database: &Connection) -> Result<()> {
    let kept = written.count_kept(database)?;
    println!(
        "  {} written while the job ran, {} still there",
        print::count(written.len(), "note"),
        print::number(kept)
    );
    println!(
        "  {} came between the read and the write of its record: the version had changed, so the job \
         overwrote nothing and processed the record again",
        print::number(job.items.conflicts)
    );
    println!("  (the demo waits at {WAIT_POINTS} records, so that this happens in every run)");
    ensure!(kept == written.len(), "a concurrent write was lost");
    ensure!(job.items.conflicts >= WAIT_POINTS, "the job should have found concurrent writes");
    Ok(())
}

/// Creates the folder with its database and configuration.
fn create(folder: &Path, transactions: u32) -> Result<Connection> {
    let path = folder.join("app.db");
    if path.exists() {
        bail!("{} already has a demo; remove it, or give another --folder", folder.display());
    }
    private::create_folder(folder).with_context(|| folder.display().to_string())?;
    private::write(&folder.join("windlass.toml"), CONFIG)?;
    say(&format!(
        "Creating {} with {} transactions …",
        path.display(),
        print::number(transactions.into())
    ));
    let begun = Instant::now();
    private::create(&path)?;
    let database = Connection::open(&path)?;
    database.pragma_update(None, "journal_mode", "wal")?;
    database.busy_timeout(std::time::Duration::from_secs(30))?;
    database.execute_batch(TABLE)?;
    database.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO transactions (id, branch, amount, status)
         SELECT i, 'branch ' || (i * 7919 % 12 + 1),
                CASE WHEN i % ?2 = 0 THEN -1 ELSE 1 END * (i * 2654435761 % 100000 + 1), 'open' FROM n",
        [transactions, BAD_EVERY.min(transactions / 7)],
    )?;
    println!("  created in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(database)
}

/// Submits a job and runs it in this process, with a progress bar.
async fn run_job(engine: &Engine, request: Request, interrupt: &mut Interrupt) -> Result<Job> {
    let id = engine.submit(request, Engine::local_identity()).await?.id();
    follow(engine, id, interrupt).await
}

async fn follow(engine: &Engine, id: JobId, interrupt: &mut Interrupt) -> Result<Job> {
    let (worker, handle) = Worker::new(engine.clone(), Options::default().with_only(id));
    let working = tokio::spawn(worker.run());
    let ended = progress::follow(engine, id, interrupt).await;
    handle.shutdown();
    working.await?;
    if !ended? {
        return Err(Interrupted(id).into());
    }
    let job = engine.job(id).await?;
    ensure!(job.status == JobStatus::Completed, "the job should have completed");
    Ok(job)
}

async fn show_letters(engine: &Engine, job: &Job) -> Result<()> {
    let filter = DeadLetterFilter { job: Some(job.id), limit: 3, ..DeadLetterFilter::default() };
    for letter in engine.store().dead_letters(&filter).await? {
        println!("  transaction {}: {}", print::scalar(&letter.key), letter.error);
    }
    if job.items.dead > 3 {
        println!("  … and {} more", job.items.dead - 3);
    }
    Ok(())
}

async fn redrive(engine: &Engine, job: &Job, interrupt: &mut Interrupt) -> Result<()> {
    let filter = DeadLetterFilter { job: Some(job.id), ..DeadLetterFilter::default() };
    for redriven in engine.redrive(&filter).await? {
        let again = follow(engine, redriven.job_id, interrupt).await?;
        println!("  {} of {} processed", again.items.processed, again.items.total);
        ensure!(
            again.items.processed == job.items.dead,
            "every corrected record should have been settled"
        );
    }
    Ok(())
}

/// The first rows of the report, and its page.
async fn show_report(engine: &Engine, job: &Job) -> Result<()> {
    let mut table = print::table(&["  BRANCH", "TRANSACTIONS", "TOTAL", "FEES"]);
    for row in engine.output(job.id, &windlass::EmittedCursor::default(), 5).await? {
        let fields: serde_json::Value = serde_json::from_str(&row.fields)?;
        let number = |name: &str| print::number(fields[name].as_i64().unwrap_or_default());
        let branch = format!("  {}", print::scalar(&fields["branch"]));
        table.add_row([branch, number("transactions"), number("total"), number("fees")]);
    }
    println!("{table}");
    Ok(())
}

fn say(text: &str) {
    println!("\n{text}");
}

fn show_next_steps(folder: &Path, settled: &Job, reported: &Job) {
    let id = settled.id;
    println!("\nInspect it:\n  cd {}", folder.display());
    // A program that was started by its path, as cargo does, may not be in PATH.
    let called = std::env::args().next().unwrap_or_default();
    if called.contains('/')
        && let Ok(program) = std::env::current_exe()
    {
        println!("  alias windlass={}", program.display());
    }
    let pages = reported.outputs.iter().filter(|output| output.kind == OutputKind::Page);
    for page in pages {
        let file = page.to.strip_prefix("file:").unwrap_or(&page.to);
        println!("  xdg-open {file}     the page of the report, for a browser");
    }
    println!(
        "  windlass jobs\n  windlass chunks {id}\n  windlass dead list\n\
         \nThen try:\n  \
         windlass check                       explain what each job type does and guarantees\n  \
         windlass run CLASSIFY --dry-run      show what would change, record by record\n  \
         windlass run REFRESH                 stop it with Ctrl-C or kill -9, and\n  \
         windlass worker                      continue where it stopped"
    );
}
