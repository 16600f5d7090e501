//! A job with a thousand listeners to its events, compared with the same job without listeners.

use crate::planned;
use crate::report::Report;
use crate::served::Served;
use crate::setup::{Bench, RAISE, accounts, builder, median};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windlass_testkit::Database;

const LISTENERS: usize = 1000;
const ROUNDS: usize = 6;

/// What one run used.
#[derive(Debug)]
struct DurationBucket {
    time: Duration,
    /// CPU seconds of the server.
    server: f64,
    /// CPU seconds of this process, which contains the listeners.
    client: f64,
    bytes: u64,
}

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let rows = bench.rows(2_000_000);
    let database = bench.database().await;
    // The first job on a database is slower than the next ones, with or without listeners.
    time(&database, rows, 0).await?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // In turn, and each first equally often, so that the order favours neither.
    for round in 0..ROUNDS {
        for listeners in if round % 2 == 0 { [0, LISTENERS] } else { [LISTENERS, 0] } {
            let took = time(&database, rows, listeners).await?;
            // The times vary on a busy machine, so print each.
            eprintln!("  {listeners} listeners: {took:.2?}");
            if listeners == 0 { without.push(took) } else { with.push(took) }
        }
    }
    let middle = |all: &[DurationBucket], of: fn(&DurationBucket) -> Duration| {
        median(all.iter().map(of).collect())
    };
    let time = |all: &[DurationBucket]| middle(all, |took| took.time);
    let server = |all: &[DurationBucket]| middle(all, |took| Duration::from_secs_f64(took.server));
    let client = middle(&with, |took| Duration::from_secs_f64(took.client));
    let bytes = with.iter().map(|took| took.bytes).sum::<u64>() / (ROUNDS * LISTENERS) as u64;
    let (quiet, loud) = (time(&without), time(&with));
    let detail = format!("{loud:.1} s, without {quiet:.1} s; {bytes} bytes to each");
    report.at_most("listeners: time of a job with 1,000", loud / quiet, 1.1, detail);
    let (alone, told) = (server(&without), server(&with));
    let detail =
        format!("{told:.2} s of its cores, without {alone:.2} s; the client {client:.2} s");
    // The server itself has little to do: the database does the work.
    report.note("listeners: the server's cores, with / without", told / alone, detail);
    Ok(())
}

/// Runs a job on a new server with `listeners` listeners.
async fn time(database: &Database, rows: u64, listeners: usize) -> Result<DurationBucket> {
    accounts(database, rows).await;
    // Plan first, so that all listeners are connected when the work begins.
    let engine = builder(database, RAISE)?.connect().await?;
    let (id, _) = planned::cut(&engine, "RAISE").await?;
    let id = id.to_string();
    engine.store().pause(id.parse()?, None).await?;
    let served = Served::start(database, RAISE, &[]).await?;
    let bytes = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for _ in 0..listeners {
        let stream = listen(&served, &id).await?;
        all.spawn(read(stream, bytes.clone()));
    }
    let before = (cores(served.process.id())?, cores(std::process::id())?);
    engine.store().resume(id.parse()?).await?;
    let time = planned::worked(database, &id).await?;
    // The cost is complete only when all listeners have read everything.
    while let Some(read) = all.join_next().await {
        read??;
    }
    let after = (cores(served.process.id())?, cores(std::process::id())?);
    let bytes = bytes.load(Ordering::Relaxed);
    Ok(DurationBucket { time, server: after.0 - before.0, client: after.1 - before.1, bytes })
}

/// Starts to listen. Returns when the first bytes have arrived.
async fn listen(served: &Served, id: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await?;
    let request = format!(
        "GET /api/v1/jobs/{id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\n\r\n",
        served.token
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 512];
    let length = stream.read(&mut head).await?;
    ensure!(head[..length].starts_with(b"HTTP/1.1 200 "), "the server does not let us listen");
    Ok(stream)
}

/// Reads to the end and ignores the content.
async fn read(mut stream: TcpStream, bytes: Arc<AtomicU64>) -> Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => bytes.fetch_add(length as u64, Ordering::Relaxed),
        };
    }
}

/// The CPU seconds of a process so far.
fn cores(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program name in parentheses may contain spaces.
    let (_, rest) = stat.rsplit_once(')').context("a process has a name")?;
    let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}
