//! Waiting for a change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windlass_drivers::Error;
use windlass_drivers::rusqlite::{Connection, OpenFlags};

use super::{SqliteStore, sql};

/// ChangeNotifier made through this store wake at once; for those of other processes, the file is looked
/// at every few milliseconds.
pub(super) async fn changed(store: &SqliteStore, at_most: Duration) {
    let until = Instant::now() + at_most;
    let looking = async {
        loop {
            if let Some(count) = store.eye.look().await {
                store.changes.reached(count);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    tokio::select! {
        biased;
        () = store.changes.wait(until.saturating_duration_since(Instant::now())) => {}
        () = looking => {}
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Sees whether somebody has changed the file, on a connection of its own: SQLite tells that only
/// by comparison with what the same connection saw before.
#[derive(Clone)]
pub(super) struct ChangePoller {
    path: Arc<PathBuf>,
    last: Arc<Mutex<Option<Look>>>,
}

struct Look {
    connection: Connection,
    version: i64,
    count: i64,
}

impl ChangePoller {
    pub(super) fn new(path: &Path) -> ChangePoller {
        ChangePoller { path: Arc::new(path.to_owned()), last: Arc::default() }
    }

    /// The counter of signals, as of the file's last change. It is given again while nothing has
    /// changed: whoever looked before may have been given up before they heard it. Whatever goes
    /// wrong is seen by the next call that does something, so that here it only means to look again.
    async fn look(&self) -> Option<i64> {
        let eye = self.clone();
        let look = tokio::task::spawn_blocking(move || eye.look_now());
        look.await.ok()?.ok()
    }

    fn look_now(&self) -> std::result::Result<i64, Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let look = match last.as_mut() {
            Some(look) => look,
            None => {
                // Never makes the file: it would have the permissions of the umask.
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = Connection::open_with_flags(self.path.as_path(), flags)?;
                connection.busy_timeout(Duration::from_secs(1))?;
                connection.pragma_update(None, "query_only", "ON")?;
                last.insert(Look { connection, version: -1, count: 0 })
            }
        };
        let version = look.connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if version != look.version {
            look.count = look.connection.query_row(sql!("signalled"), [], |row| row.get(0))?;
            look.version = version;
        }
        Ok(look.count)
    }
}
