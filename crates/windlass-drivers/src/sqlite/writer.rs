//! The thread that writes to a file.

use std::{path::PathBuf, sync::mpsc, thread};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use super::{busy, guarded};
use crate::{Error, ErrorClass};

/// Sends work to the thread. After this is dropped, the thread ends with the last work.
pub(super) struct Writer {
    work: mpsc::Sender<Work>,
}

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

impl Writer {
    pub(super) fn start(mut connection: Connection, file: PathBuf) -> Result<Self, Error> {
        let (sender, receiver) = mpsc::channel::<Work>();
        thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || {
                busy::begin(&file);
                for work in receiver {
                    work(&mut connection);
                }
            })
            .map_err(|error| {
                Error::new(ErrorClass::Other, format!("cannot start a thread: {error}"))
            })?;
        Ok(Writer { work: sender })
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, outcome) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            // The caller was cancelled before its turn.
            if sender.is_closed() {
                return;
            }
            let _ = sender.send(in_transaction(connection, work));
        });
        self.work.send(work).map_err(|_| ended())?;
        outcome.await.unwrap_or_else(|_| Err(ended()))
    }
}

pub(super) fn in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    // A rollback can fail on a broken disk. The next work must not inherit the transaction.
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(busy::explain)?;
    busy::taken();
    // Dropped without a commit, the transaction rolls back.
    let value = guarded(|| work(&transaction))?;
    transaction.commit()?;
    Ok(value)
}

fn ended() -> Error {
    Error::new(ErrorClass::Other, "the SQLite writer thread has ended")
}
