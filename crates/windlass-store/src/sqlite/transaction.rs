//! Transactions on the file, in terms of the store's own errors.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Runs work in a transaction that changes something: all of it, or nothing when it fails.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let refusal = Refusal::default();
        let keep = refusal.clone();
        let done = self.database.write(move |connection| {
            let tx = Transaction { connection, signalled: Cell::new(None) };
            let value = work(&tx).map_err(|error| keep.put(error))?;
            Ok((value, tx.signalled.get()))
        });
        let (value, signalled) = done.await.map_err(|error| refusal.take(error))?;
        // Only now, when it is committed, may the others look.
        if let Some(count) = signalled {
            self.changes.reached(count);
        }
        Ok(value)
    }

    /// Runs work that only reads, on one snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let refusal = Refusal::default();
        let keep = refusal.clone();
        let done = self.database.read(move |connection| {
            let tx = Transaction { connection, signalled: Cell::new(None) };
            work(&tx).map_err(|error| keep.put(error))
        });
        done.await.map_err(|error| refusal.take(error))
    }
}

impl Transaction<'_> {
    /// Runs a statement and makes its rows into something.
    pub(super) fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(Error::from)?;
        let mut rows = statement.query(params).map_err(Error::from)?;
        let mut made = Vec::new();
        while let Some(next) = rows.next().map_err(Error::from)? {
            made.push(row(next)?);
        }
        Ok(made)
    }

    /// Runs a statement that gives one row or none. It is always run to its end, since a statement
    /// that changes rows and returns them is not done before.
    pub(super) fn query_opt<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.query(sql, params, row)?.into_iter().next())
    }

    /// Runs a statement that gives exactly one row.
    pub(super) fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        row: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let row = self.query_opt(sql, params, row)?;
        row.ok_or_else(|| StoreError::Unreadable("a row is missing".to_owned()))
    }

    /// Runs a statement and gives the number of rows it touched.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(Error::from)?;
        Ok(statement.execute(params).map_err(Error::from)? as u64)
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql).map_err(Error::from)?)
    }

    /// Wakes whoever waits, when the transaction commits.
    pub(super) fn signal(&self) -> Result<()> {
        let count =
            self.query_one(sql!("signal"), [], |row| Ok(row.get(0).map_err(Error::from)?))?;
        self.signalled.set(Some(count));
        Ok(())
    }
}

/// Carries an error that is not the database's out of a transaction that it rolls back.
#[derive(Clone, Default)]
struct Refusal(Arc<Mutex<Option<StoreError>>>);

impl Refusal {
    fn put(&self, error: StoreError) -> Error {
        match error {
            StoreError::Database(error) => error,
            refused => {
                let message = refused.to_string();
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                Error::new(ErrorClass::Other, message)
            }
        }
    }

    fn take(&self, error: Error) -> StoreError {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        refused.unwrap_or(StoreError::Database(error))
    }
}
