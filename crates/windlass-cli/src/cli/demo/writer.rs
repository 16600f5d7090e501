//! The concurrent writer of the demo: writes notes to random transactions while the job runs, with an
//! optimistic lock on the version column, and to records that the job has just read.

use super::classify::{WaitPoint, wait_at};
use anyhow::{Result, anyhow};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread with a connection of its own.
pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Written>>,
}

/// The notes that were committed, by transaction.
pub(super) struct Written(HashMap<i64, String>);

impl Writer {
    pub(super) fn start(path: PathBuf, transactions: u32) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let wait_points =
            (1..=WAIT_POINTS).map(|n| n * i64::from(transactions) / (WAIT_POINTS + 1));
        let wait_points = wait_at(wait_points.collect());
        let thread = std::thread::spawn(move || write(path, transactions, &wait_points, &stopped));
        Writer { stop, thread }
    }

    pub(super) fn finish(self) -> Result<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the writer panicked"))?
    }
}

/// The number of records that are written while the job is between their read and their write.
pub(super) const WAIT_POINTS: i64 = 5;

fn write(
    path: PathBuf,
    transactions: u32,
    wait_points: &Receiver<WaitPoint>,
    stop: &AtomicBool,
) -> Result<Written> {
    let mut database = Connection::open(path)?;
    // The job commits constantly. Retrying quickly gets a turn where a long wait would not.
    database.busy_handler(Some(|_| {
        std::thread::sleep(Duration::from_micros(100));
        true
    }))?;
    let mut written = HashMap::new();
    let mut seed = 42_u64;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // A record that the job has just read, or else one of a fixed pseudo-random sequence.
        let wait_point = wait_points.try_recv().ok();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (seed >> 33) as i64 % i64::from(transactions) + 1;
        let id = wait_point.as_ref().map_or(random, |wait_point| wait_point.id);
        let version: i64 =
            database.query_row("SELECT version FROM transactions WHERE id = ?1", [id], |row| {
                row.get(0)
            })?;
        let note = format!("note {number}");
        let changed = database.execute(
            "UPDATE transactions SET note = ?3, version = version + 1 WHERE id = ?1 AND version = ?2",
            params![id, version, note],
        )?;
        if changed == 1 {
            written.insert(id, note);
        }
        if let Some(wait_point) = wait_point {
            let _ = wait_point.written.send(());
        }
        // Leave time for the job: SQLite has one writer at a time.
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Written(written))
}

impl Written {
    pub(super) fn len(&self) -> i64 {
        self.0.len() as i64
    }

    /// How many of the notes are still in the table.
    pub(super) fn count_kept(&self, database: &Connection) -> Result<i64> {
        let mut statement = database.prepare("SELECT note FROM transactions WHERE id = ?1")?;
        let mut kept = 0;
        for (id, note) in &self.0 {
            let found: Option<String> = statement.query_row([id], |row| row.get(0))?;
            kept += i64::from(found.as_ref() == Some(note));
        }
        Ok(kept)
    }
}
