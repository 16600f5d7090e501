//! Transactions on the SQLite file, with the store's error type.

use std::cell::Cell;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_drivers::rusqlite::{Connection, Params, Row};
use windlass_drivers::{Error, ErrorClass};

use super::{SqliteStore, sql};
use crate::{Result, StoreError};

/// An open transaction.
pub(super) struct Transaction<'a> {
    connection: &'a Connection,
    signalled: Cell<Option<i64>>,
}

impl SqliteStore {
    /// Runs work in a write transaction, which is rolled back when the work fails.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let carrier = ErrorCarrier::default();
        let errors = carrier.clone();
        let done = self.database.write(move |connection| {
            let tx = Transaction { connection, signalled: Cell::new(None) };
            let value = work(&tx).map_err(|error| errors.put(error))?;
            Ok((value, tx.signalled.get()))
        });
        let (value, signalled) = done.await.map_err(|error| carrier.take(error))?;
        // Subscriptions are notified after the commit, when they can read the change.
        if let Some(count) = signalled {
            self.poller.changes().advance_to(count);
        }
        Ok(value)
    }

    /// Runs work that only reads, on one snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let carrier = ErrorCarrier::default();
        let errors = carrier.clone();
        let done = self.database.read(move |connection| {
            let tx = Transaction { connection, signalled: Cell::new(None) };
            work(&tx).map_err(|error| errors.put(error))
        });
        done.await.map_err(|error| carrier.take(error))
    }

    /// Runs one statement that only reads, and converts its rows.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        sql: impl AsRef<str> + Send + 'static,
        params: impl Params + Send + 'static,
        row: impl Fn(&Row<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Vec<T>> {
        self.read(move |tx| tx.query(sql.as_ref(), params, row)).await
    }

    /// Runs one statement that only reads, and converts its first row.
    pub(super) async fn query_opt<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: impl Params + Send + 'static,
        row: impl Fn(&Row<'_>) -> Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, params, row).await?.into_iter().next())
    }

    /// Runs one statement in its own write transaction and returns the number of changed rows.
    pub(super) async fn execute(
        &self,
        sql: &'static str,
        params: impl Params + Send + 'static,
    ) -> Result<u64> {
        self.write(move |tx| tx.execute(sql, params)).await
    }

    /// [`SqliteStore::execute`], and signals the change.
    pub(super) async fn execute_and_signal(
        &self,
        sql: &'static str,
        params: impl Params + Send + 'static,
    ) -> Result<u64> {
        let execute = move |tx: &Transaction<'_>| {
            let changed = tx.execute(sql, params)?;
            tx.signal().map(|()| changed)
        };
        self.write(execute).await
    }
}

impl Transaction<'_> {
    /// Runs a statement and converts its rows.
    pub(super) fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(Error::from)?;
        let mut rows = statement.query(params).map_err(Error::from)?;
        let mut converted = Vec::new();
        while let Some(next) = rows.next().map_err(Error::from)? {
            converted.push(row(next)?);
        }
        Ok(converted)
    }

    /// Runs a statement that returns at most one row. It reads all rows, since a statement that
    /// changes rows and returns them has changed them all only after its last row.
    pub(super) fn query_opt<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, params, row)?.into_iter().next())
    }

    /// Runs a statement that returns exactly one row.
    pub(super) fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let row = self.query_opt(sql, params, row)?;
        row.ok_or_else(|| StoreError::Unreadable("a row is missing".to_owned()))
    }

    /// Runs a statement and returns the number of changed rows.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(Error::from)?;
        Ok(statement.execute(params).map_err(Error::from)? as u64)
    }

    /// Runs several statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql).map_err(Error::from)?)
    }

    /// Notifies all subscriptions when the transaction commits.
    pub(super) fn signal(&self) -> Result<()> {
        let count =
            self.query_one(sql!("signal"), [], |row| Ok(row.get(0).map_err(Error::from)?))?;
        self.signalled.set(Some(count));
        Ok(())
    }
}

/// Carries an error of the store through the driver, whose transactions fail only with its own error
/// type.
#[derive(Clone, Default)]
struct ErrorCarrier(Arc<Mutex<Option<StoreError>>>);

impl ErrorCarrier {
    fn put(&self, error: StoreError) -> Error {
        match error {
            StoreError::Database(error) => error,
            other => {
                let message = other.to_string();
                *self.0.lock() = Some(other);
                Error::new(ErrorClass::Other, message)
            }
        }
    }

    fn take(&self, error: Error) -> StoreError {
        self.0.lock().take().unwrap_or(StoreError::Database(error))
    }
}
