//! The transactions from the submit of a small job to its first write, counted in the log of the server.

use crate::latency::{JOBS, first_write, submit};
use crate::setup::{Bench, accounts, binary, builder, folder};
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::time::Duration;
use windlass_testkit::{Database, Windlass};

const SUBMITS: usize = 20;
/// A job of ten rows that takes longer is an error.
const PATIENCE: Duration = Duration::from_secs(60);
/// What marks the submit in the log.
const MARK: &str = "SELECT 'the submit begins'";
/// The step's statement.
const WRITE: &str = "UPDATE accounts SET amount";

/// The median over several submits on an idle worker.
pub(crate) async fn count(bench: &Bench) -> Result<f64> {
    let bench = bench.logging();
    let database = bench.database().await;
    accounts(&database, 10).await;
    let engine = builder(&database, JOBS)?.connect().await?;
    let folder = folder(&database, &database, JOBS)?;
    let _worker = Windlass::new(folder.path()).binary(binary()?).spawn(["worker"]);
    let mut counts = Vec::new();
    for round in 0..SUBMITS + 5 {
        let written = first_write(&database, &engine, async || {
            database.run(MARK).await;
            submit(&engine).await
        });
        tokio::time::timeout(PATIENCE, written).await.context("the job does not end")??;
        // The worker is still starting during the first few.
        if round >= 5 {
            counts.push(in_log(&log(&database).await).context("the log has no submit")?);
        }
    }
    counts.sort_unstable();
    Ok(counts[SUBMITS / 2] as f64)
}

/// The end of the server's log, which holds the last submit.
async fn log(database: &Database) -> String {
    database
        .one(
            "SELECT pg_read_file(file, greatest(size - 1000000, 0), 1000000)
             FROM pg_current_logfile() AS file, pg_stat_file(file)",
        )
        .await
}

/// The number of different transactions between the last mark and the first write after it. Each line begins with
/// the transaction's number.
fn in_log(log: &str) -> Option<usize> {
    let (_, after) = log.rsplit_once(MARK)?;
    let mut transactions = HashSet::new();
    for line in after.lines() {
        if let Some((transaction, statement)) = line.split_once(" LOG:  ")
            && statement.starts_with("execute") | statement.starts_with("statement")
        {
            transactions.insert(transaction);
        }
        if line.contains(WRITE) {
            return Some(transactions.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_count_once_from_the_last_mark_to_the_write() {
        let log = format!(
            "1/1 LOG:  statement: {MARK}\n2/1 LOG:  execute s: {WRITE}\n\
             1/2 LOG:  statement: {MARK}\n2/2 LOG:  statement: BEGIN\n2/2 LOG:  execute s1: INSERT\n\
             \t2/9 not a line of its own\n3/7 LOG:  execute s2: SELECT\n2/3 LOG:  execute s3: {WRITE}\n\
             2/4 LOG:  statement: COMMIT\n"
        );
        assert_eq!(in_log(&log), Some(3));
        assert_eq!(in_log("nothing"), None);
    }
}
