//! The concurrent writer of the demo: writes notes to random transactions while the job runs, with an
//! optimistic lock on the version column.

use anyhow::{Result, anyhow};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
        let thread = std::thread::spawn(move || write(path, transactions, &stopped));
        Writer { stop, thread }
    }

    pub(super) fn finish(self) -> Result<Written> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the writer panicked"))?
    }
}

fn write(path: PathBuf, transactions: u32, stop: &AtomicBool) -> Result<Written> {
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
        // A fixed pseudo-random sequence over the whole table.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (seed >> 33) as i64 % i64::from(transactions) + 1;
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
