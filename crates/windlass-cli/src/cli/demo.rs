//! `windlass demo`: a whole job on a database made for the purpose, with bad records in it and
//! another program writing to the same table all the while.

mod writer;

use super::progress::{self, Interrupt};
use super::{audit, config, print, private};
use anyhow::{Context, Result, bail, ensure};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use windlass::{DeadLetterFilter, Engine, Job, JobStatus, Options, Request, Worker};
use writer::Writer;

#[derive(clap::Args)]
pub(super) struct Args {
    /// The folder to make it in
    #[arg(long, default_value = "windlass-demo")]
    folder: PathBuf,
    /// How many transactions
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    transactions: u32,
}

const CONFIG: &str = include_str!("demo/windlass.toml");
const TABLE: &str = include_str!("demo/transactions.sql");
const REPORT: &str = include_str!("demo/report.sql");
/// One in so many records is bad.
const BAD_EVERY: u32 = 142_857;

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let folder = args.folder;
    let database = make(&folder, args.transactions)?;
    // The configuration names its files relative to its own folder.
    std::env::set_current_dir(&folder)?;
    let engine = config::engine(Path::new("windlass.toml")).await?;

    let writer = Writer::start("app.db".into(), args.transactions);
    say("Settling every open transaction, while another program books notes on the same rows …");
    let settled = work(&engine, Request::new("SETTLE")).await?;
    let written = writer.finish()?;
    print::summary(&settled);
    ensure!(settled.status == JobStatus::Completed, "the job should have completed");

    say("The other program's writes:");
    let kept = written.count_kept(&database)?;
    println!(
        "  {} made while the job ran, {} still there",
        print::number(written.len()),
        print::number(kept)
    );
    ensure!(kept == written.len(), "a concurrent write was lost");

    say(
        "Records that could not be settled were set aside, with the reason; nothing else waited for them:",
    );
    show_letters(&engine, &settled).await?;
    let mended = database.execute(
        "UPDATE transactions SET amount = -amount, version = version + 1 WHERE amount < 0",
        [],
    )?;
    say(&format!("{mended} amounts mended by hand, as you would. Now only those records again:"));
    redrive(&engine, &settled).await?;

    say("What the night was for, a report by branch:");
    show_report(&database)?;

    say("And the proof:");
    let proof = engine.audit(settled.id).await?;
    audit::show(&proof);
    ensure!(proof.is_proven(), "the audit should have proven the job");
    farewell(&folder, &settled);
    Ok(ExitCode::SUCCESS)
}

/// Makes the folder with its database and configuration.
fn make(folder: &Path, transactions: u32) -> Result<Connection> {
    let path = folder.join("app.db");
    if path.exists() {
        bail!("{} has a demo already; remove it, or give another --folder", folder.display());
    }
    private::create_folder(folder).with_context(|| folder.display().to_string())?;
    private::write(&folder.join("windlass.toml"), CONFIG)?;
    say(&format!(
        "Making {} with {} transactions …",
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
    println!("  made in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(database)
}

/// Submits a job and works it here, with a progress bar.
async fn work(engine: &Engine, request: Request) -> Result<Job> {
    let id = engine.submit(request, Engine::local_identity()).await?.id();
    follow(engine, id).await
}

async fn follow(engine: &Engine, id: windlass::JobId) -> Result<Job> {
    let (worker, handle) =
        Worker::new(engine.clone(), Options { only: Some(id), ..Options::default() });
    let working = tokio::spawn(worker.run());
    let ended = progress::follow(engine, id, &mut Interrupt::listen()?).await;
    handle.shutdown();
    working.await?;
    if !ended? {
        bail!("stopped; `windlass worker --job {id}` in the demo's folder goes on");
    }
    Ok(engine.job(id).await?)
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

async fn redrive(engine: &Engine, job: &Job) -> Result<()> {
    let filter = DeadLetterFilter { job: Some(job.id), ..DeadLetterFilter::default() };
    for redriven in engine.redrive(&filter).await? {
        let again = follow(engine, redriven.job_id).await?;
        println!("  {} of {} processed", again.items.processed, again.items.total);
        ensure!(
            again.items.processed == job.items.dead,
            "every mended record should have been settled"
        );
    }
    Ok(())
}

fn show_report(database: &Connection) -> Result<()> {
    let mut table = print::table(&["  BRANCH", "TRANSACTIONS", "TOTAL", "FEES"]);
    let mut statement = database.prepare(REPORT)?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, i64>(1)?,
            row.get::<_, i64>(2)?,
            row.get::<_, i64>(3)?,
        ))
    })?;
    for row in rows {
        let (branch, count, total, fees) = row?;
        let number = print::number;
        table.add_row([format!("  {branch}"), number(count), number(total), number(fees)]);
    }
    println!("{table}");
    Ok(())
}

fn say(text: &str) {
    println!("\n{text}");
}

fn farewell(folder: &Path, job: &Job) {
    let id = job.id;
    println!("\nLook around:\n  cd {}", folder.display());
    // Started by its path, as by cargo: then the name alone would not be found.
    let called = std::env::args().next().unwrap_or_default();
    if called.contains('/')
        && let Ok(program) = std::env::current_exe()
    {
        println!("  alias windlass={}", program.display());
    }
    println!(
        "  windlass jobs\n  windlass chunks {id}\n  windlass dead list\n\
         \nAnd try:\n  \
         windlass check                       what each job type does and promises\n  \
         windlass run REFRESH --dry-run       what would happen, with nothing changed\n  \
         windlass run REFRESH                 press Ctrl-C half-way, or kill -9 it, and then\n  \
         windlass worker                      go on where it stopped"
    );
}
