//! A few connections that read, beside the one that writes.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{busy, connection, guarded};
use crate::{Class, Error};

/// Readers are opened when first needed and kept for the next.
pub(super) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Readers { path: Arc::new(path), idle: Arc::default(), free: Arc::new(Semaphore::new(MOST)) }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.free.clone().acquire_owned().await.map_err(|_| ended())?;
        let (path, idle) = (self.path.clone(), self.idle.clone());
        let reading = tokio::task::spawn_blocking(move || {
            // Kept until the work is done, also when the caller is cancelled meanwhile.
            let _place = place;
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            busy::begin(&path);
            let connection = match kept {
                Some(connection) => connection,
                None => connection::reader(&path)?,
            };
            let outcome = on_snapshot(&connection, work);
            // One that could not end its transaction would show an old snapshot to the next.
            if connection.is_autocommit() {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            outcome
        });
        reading.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// More readers than this would gain nothing on the disks they share.
const MOST: usize = 4;

fn on_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    connection.execute_batch("BEGIN")?;
    let outcome = guarded(|| work(connection));
    // Nothing was written, and an error here is seen by the caller of this function, which drops
    // the connection.
    let _ = connection.execute_batch("ROLLBACK");
    outcome
}

fn ended() -> Error {
    Error::new(Class::Other, "the runtime that reads from SQLite is shutting down")
}
