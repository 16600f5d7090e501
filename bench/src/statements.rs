//! The cost of a plain chunk for the store: statements and dead tuples.

use crate::planned;
use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, binary, folder};
use anyhow::Result;
use std::time::Duration;
use tokio_postgres::Row;
use windlass_testkit::{Database, Windlass, eventually};

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let bench = bench.counting();
    let rows = bench.rows(2_000_000);
    // Statements are counted per database, so the store needs its own.
    let (store, data) = (bench.database().await, bench.database().await);
    accounts(&data, rows).await;
    data.run("CREATE EXTENSION pg_stat_statements").await;
    let folder = folder(&store, &data, RAISE)?;
    let windlass = Windlass::new(folder.path()).binary(binary()?);
    let id = windlass.run(["submit", "RAISE"]).await.ok().stdout;
    data.run("SELECT pg_stat_statements_reset()").await;
    let worker = windlass.spawn(["worker"]);
    planned::worked(&store, id.trim()).await?;
    worker.term();
    worker.wait().await.ok();
    let chunks = store.one::<i64>("SELECT count(*) FROM windlass_chunks").await as f64;
    statements(&store, &data, chunks, report).await?;
    dead_tuples(&store, chunks, report).await
}

/// All statements sent to the store, including BEGIN, SET and COMMIT, and the most frequent ones.
async fn statements(
    store: &Database,
    data: &Database,
    chunks: f64,
    report: &mut Report,
) -> Result<()> {
    let sql = format!(
        "SELECT s.query, s.calls, s.total_exec_time, sum(s.calls) OVER ()::float8
         FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
         WHERE d.datname = '{}' ORDER BY s.calls DESC",
        store.name()
    );
    let rows = data.client().await.query(&sql, &[]).await?;
    let all: f64 = rows.first().map_or(0.0, |row| row.get(3));
    let detail = format!("{all:.0} statements for {chunks:.0} chunks");
    report.at_most("statements: at the store per chunk", all / chunks, 4.0, detail);
    note(&rows, 10, chunks, report);
    Ok(())
}

/// Reports how often these statements ran per unit of work, and how long one took. The columns are the text, the
/// number of calls and the milliseconds of all of them.
fn note(rows: &[Row], most: usize, units: f64, report: &mut Report) {
    for row in rows.iter().take(most) {
        let (query, calls, took): (&str, i64, f64) = (row.get(0), row.get(1), row.get(2));
        let line: String = query.trim_start_matches(['-', ' ']).lines().take(1).collect();
        let name: String = line.chars().take(40).collect();
        let each = took * 1000.0 / calls as f64;
        let detail = format!("{calls} calls, {each:.0} µs each");
        report.note(&format!("  {name}"), calls as f64 / units, detail);
    }
}

/// Reports the statements that took most of the server's time, with the time to plan them, per job or per chunk. The
/// database is of a server that counts them.
pub(crate) async fn costly(
    database: &Database,
    (count, of): (u64, &str),
    report: &mut Report,
) -> Result<()> {
    let units = count as f64;
    let sql = "SELECT query, calls, total_exec_time + total_plan_time,
                   sum(total_exec_time + total_plan_time) OVER (), sum(calls) OVER ()::float8
               FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
               WHERE d.datname = current_database() ORDER BY 3 DESC";
    let rows = database.client().await.query(sql, &[]).await?;
    if let Some(first) = rows.first() {
        let (took, calls): (f64, f64) = (first.get(3), first.get(4));
        let detail = format!("{:.2} ms of the server each", took / units);
        report.note(&format!("  statements per {of}"), calls / units, detail);
    }
    note(&rows, 30, units, report);
    Ok(())
}

/// Autovacuum is off on this server, so dead tuples stay. Pruning a page keeps the line pointers and the index
/// entries, so those count too.
async fn dead_tuples(store: &Database, chunks: f64, report: &mut Report) -> Result<()> {
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    // A connection reports its statistics at the latest when it closes.
    let ended = async || store.one::<i64>(others).await == 0;
    eventually("all connections to the store have ended", Duration::from_secs(10), ended).await;
    let sql = "SELECT relname::text, n_dead_tup, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
               WHERE n_dead_tup > 0 ORDER BY n_dead_tup DESC";
    for row in store.client().await.query(sql, &[]).await? {
        let (table, dead): (&str, i64) = (row.get(0), row.get(1));
        let (updates, hot): (i64, i64) = (row.get(2), row.get(3));
        let what = format!("statements: dead tuples, {table}");
        let detail = format!("per 10,000 chunks; {hot} of {updates} updates were HOT");
        report.note(&what, dead as f64 * 10_000.0 / chunks, detail);
    }
    Ok(())
}
