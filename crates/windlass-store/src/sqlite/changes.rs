//! Polls the SQLite file for changes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use windlass_drivers::rusqlite::{Connection, OpenFlags};
use windlass_drivers::{Error, Sqlite};

use super::{SqliteStore, sql};
use crate::subscription::{ChangeCounter, ChangeSource};
use crate::{ChangeStore, Subscription, Topics};

impl ChangeStore for SqliteStore {
    fn subscribe_to(&self, topics: Topics) -> Subscription {
        Subscription::new(&self.poller.changes, topics, self.poller.clone())
    }

    fn change_count(&self) -> Option<i64> {
        Some(self.poller.changes.count())
    }
}

const POLL_INTERVAL: Duration = Duration::from_millis(10);
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Detects changes. Changes through this store are signalled at once; for those of other processes,
/// the file is polled while a subscription waits. Polling has a connection of its own, since SQLite
/// reports changes only relative to what the same connection saw before.
pub(super) struct ChangePoller {
    database: Sqlite,
    changes: ChangeCounter,
    reader: Arc<Mutex<Option<SignalReader>>>,
    /// When the file was polled last, for all subscriptions of this process.
    polled: Mutex<Option<Instant>>,
}

impl ChangePoller {
    pub(super) fn new(database: Sqlite) -> ChangePoller {
        let (changes, reader) = (ChangeCounter::new(), Arc::default());
        ChangePoller { database, changes, reader, polled: Mutex::default() }
    }

    pub(super) fn changes(&self) -> &ChangeCounter {
        &self.changes
    }

    /// Whether the file is to be polled now: one poll serves all subscriptions that wait.
    fn is_due(&self) -> bool {
        let mut polled = self.polled.lock();
        let is_due = polled.is_none_or(|at| at.elapsed() >= POLL_INTERVAL / 2);
        if is_due {
            *polled = Some(Instant::now());
        }
        is_due
    }

    /// Reads the signal counter. Errors are ignored: the next poll tries again, and other calls to
    /// the store report them.
    async fn poll(&self) {
        let (path, reader) = (self.database.path().to_owned(), self.reader.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut reader = reader.lock();
            match reader.as_mut() {
                Some(reader) => reader.read(),
                None => reader.insert(SignalReader::open(&path)?).read(),
            }
        });
        if let Ok(Ok(count)) = read.await {
            self.changes.advance_to(count);
        }
    }
}

#[async_trait]
impl ChangeSource for ChangePoller {
    async fn watch(&self) {
        while let Some(notified) = self.database.notified() {
            notified.await;
            let read =
                |db: &Connection| Ok(db.query_row(sql!("signal_count"), [], |row| row.get(0))?);
            if let Ok(count) = self.database.read(read).await {
                self.changes.advance_to(count);
            }
        }
        loop {
            if self.is_due() {
                self.poll().await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Reads the counter of signals, but only when the file has changed.
struct SignalReader {
    connection: Connection,
    version: i64,
    count: i64,
}

impl SignalReader {
    fn open(path: &Path) -> Result<SignalReader, Error> {
        // Without SQLITE_OPEN_CREATE, which would create the file with the permissions of the umask.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "query_only", "ON")?;
        Ok(SignalReader { connection, version: -1, count: 0 })
    }

    /// The counter. An unchanged one is returned again, since the waiter for which it was read first
    /// may have been cancelled before it saw the change.
    fn read(&mut self) -> Result<i64, Error> {
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if version != self.version {
            self.count = self.connection.query_row(sql!("signal_count"), [], |row| row.get(0))?;
            self.version = version;
        }
        Ok(self.count)
    }
}
