//! The reading connections.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{busy, connection, guarded};
use crate::{Error, ErrorClass};

/// A pool of reading connections, opened on demand.
pub(super) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Readers {
            path: Arc::new(path),
            idle: Arc::default(),
            free: Arc::new(Semaphore::new(MAX_READERS)),
        }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.free.clone().acquire_owned().await.map_err(|_| ended())?;
        let (path, idle) = (self.path.clone(), self.idle.clone());
        let reading = tokio::task::spawn_blocking(move || {
            // Kept until the work is done, even if the caller is cancelled.
            let _permit = permit;
            let idle_reader = idle.lock().pop();
            busy::begin(&path);
            let connection = match idle_reader {
                Some(connection) => connection,
                None => connection::reader(&path)?,
            };
            let outcome = on_snapshot(&connection, work);
            // A reader that could not end its transaction would show an old snapshot to the next caller.
            if connection.is_autocommit() {
                idle.lock().push(connection);
            }
            outcome
        });
        reading.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The most readers. More would not be faster on the same disk.
const MAX_READERS: usize = 4;

pub(super) fn on_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    connection.execute_batch("BEGIN")?;
    let outcome = guarded(|| work(connection));
    // Nothing was written. On an error here the caller drops the connection.
    let _ = connection.execute_batch("ROLLBACK");
    outcome
}

pub(super) fn ended() -> Error {
    Error::new(ErrorClass::Other, "the runtime is shutting down")
}
