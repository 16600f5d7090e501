//! The load test: the same report with more and more slots in one process, over a primary and two replicas. For each
//! step it prints the throughput, the most connections at a time, the databases' processor time, and what each server
//! has read.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::command;
use crate::night::Weather;
use crate::servers::{self, Servers};

/// The chunks of a step, where the table has that many rows: more than the slots of any step.
const CHUNKS: u64 = 2000;
/// The time between two samples of the connections.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// The measurements of one step.
struct Step {
    slots: u16,
    chunks: u64,
    took: Duration,
    /// The most connections at a time, of each of the bank's servers.
    connections: [i64; 3],
    /// The same of the server with the store and the warehouse.
    store_connections: i64,
    /// Of each of the bank's servers.
    used: [Usage; 3],
    is_equal: bool,
}

/// What a server has used since its start, or in one step.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu: Duration,
    /// The prepared statements that it ran. Only Windlass prepares its statements.
    statements: u64,
    /// The rows that it read along an index, as every chunk does.
    rows_read: u64,
}

/// Runs the report once per step and prints the table. Returns whether every report was right.
pub(crate) async fn run(servers: &Servers, rows: u64, concurrency: &[u16]) -> anyhow::Result<bool> {
    let items = (rows / CHUNKS).clamp(1, 10_000);
    let config =
        servers::windlass_toml()?.replace("chunk.items = 10000", &format!("chunk.items = {items}"));
    fs::write(servers.folder.path().join("windlass.toml"), config)?;
    let mut steps = Vec::new();
    for (number, slots) in concurrency.iter().enumerate() {
        let date = format!("2026-03-{:02}", number + 1);
        steps.push(step(servers, *slots, &date).await?);
    }
    print(rows, &steps);
    Ok(steps.iter().all(|step| step.is_equal))
}

async fn step(servers: &Servers, slots: u16, date: &str) -> anyhow::Result<Step> {
    let (folder, environment) = (servers.folder.path(), servers.environment(Weather::Calm));
    let (param, slots_text) = (format!("date={date}"), slots.to_string());
    let arguments =
        ["run", "DAILY_REPORT", "--param", &param, "--concurrency", &slots_text, "--json"];
    let before = usage(servers).await;
    let begun = Instant::now();
    let done = command::run(folder, &environment, &arguments);
    tokio::pin!(done);
    let (mut connections, mut store_connections) = ([0; 3], 0);
    let done = loop {
        tokio::select! {
            done = &mut done => break done?,
            () = tokio::time::sleep(SAMPLE_INTERVAL) => {}
        }
        for (most, bank) in connections.iter_mut().zip(&servers.banks) {
            *most = bank.database.one::<i64>(BANK_CONNECTIONS).await.max(*most);
        }
        store_connections =
            servers.warehouse.one::<i64>(STORE_CONNECTIONS).await.max(store_connections);
    };
    let took = begun.elapsed();
    let after = usage(servers).await;
    let used = [0, 1, 2].map(|n| Usage {
        cpu: after[n].cpu.saturating_sub(before[n].cpu),
        statements: after[n].statements - before[n].statements,
        rows_read: after[n].rows_read - before[n].rows_read,
    });
    let job = &done.json;
    eprintln!("{slots} slots: {} in {:.1} s", job["status"], took.as_secs_f64());
    Ok(Step {
        slots,
        chunks: job["chunks"]["total"].as_u64().context("a job has chunks")?,
        took,
        connections,
        store_connections,
        used,
        is_equal: servers::loaded(&servers.warehouse, date).await == servers.own.0,
    })
}

/// The connections to the bank's database, without the one that counts them.
const BANK_CONNECTIONS: &str = "SELECT count(*) FROM information_schema.processlist \
                                WHERE db = database() AND id <> connection_id()";
const STORE_CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity \
                                 WHERE datname = current_database() AND pid <> pg_backend_pid()";

async fn usage(servers: &Servers) -> [Usage; 3] {
    let mut all = [Usage::default(); 3];
    for (usage, bank) in all.iter_mut().zip(&servers.banks) {
        let counters =
            "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_stmt_execute', 'Handler_read_next')";
        let rows = bank.database.rows(counters).await;
        let counter = |name: &str| {
            let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
            row.and_then(|row| row[1].as_deref()?.parse().ok()).unwrap_or(0)
        };
        let (statements, rows_read) = (counter("Com_stmt_execute"), counter("Handler_read_next"));
        *usage = Usage { cpu: bank.server.cpu_time(), statements, rows_read };
    }
    all
}

fn print(rows: u64, steps: &[Step]) {
    println!("\n{rows} transactions; each list has the primary and its two replicas\n");
    println!(
        "| slots | chunks | seconds | rows/s | connections at most | store's | database CPU | cores | \
         statements | rows read | totals |"
    );
    println!("|--:|--:|--:|--:|---|--:|---|--:|---|---|---|");
    for step in steps {
        let seconds = step.took.as_secs_f64();
        let cpu = step.used.map(|used| format!("{:.1} s", used.cpu.as_secs_f64()));
        let all: f64 = step.used.iter().map(|used| used.cpu.as_secs_f64()).sum();
        println!(
            "| {} | {} | {seconds:.1} | {:.0} | {} | {} | {} | {:.2} | {} | {} | {} |",
            step.slots,
            step.chunks,
            rows as f64 / seconds,
            step.connections.map(|most| most.to_string()).join(", "),
            step.store_connections,
            cpu.join(", "),
            all / seconds,
            step.used.map(|used| used.statements.to_string()).join(", "),
            step.used.map(|used| used.rows_read.to_string()).join(", "),
            if step.is_equal { "equal" } else { "NOT EQUAL" },
        );
    }
}
