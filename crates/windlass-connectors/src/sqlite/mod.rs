//! SQLite. A file has one writer at a time, so no other transaction changes the ledger during a commit.

mod catalog;
mod commit;
mod cut;
mod deferred;
mod describe;
mod fan_in;
mod fence;
mod history;
mod outbox;
mod preview;
mod read;
mod row;
mod source;
mod split;
mod write;

use crate::sql::{Bind, Sql};
use crate::{ConnectorError, Result};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, Transaction};
use windlass_core::Value;
use windlass_drivers::{Error, ErrorClass, Sqlite};

/// A SQLite file with records.
pub(crate) struct SqliteConnection {
    db: Sqlite,
}

impl SqliteConnection {
    pub(crate) fn new(db: Sqlite) -> SqliteConnection {
        SqliteConnection { db }
    }

    /// Runs work that only reads, on one snapshot.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.db.read(move |connection| keep(work(connection))).await?
    }

    /// Runs work in a write transaction, which is rolled back when the work fails.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let outcome = self.db.write(move |transaction| {
            work(transaction).map_err(|error| match error {
                ConnectorError::Database(error) => error,
                other => {
                    // Any error rolls the transaction back. The channel carries the original.
                    let stand_in = Error::new(ErrorClass::Other, other.to_string());
                    let _ = sender.send(other);
                    stand_in
                }
            })
        });
        match outcome.await {
            Ok(value) => Ok(value),
            Err(error) => Err(receiver.try_recv().unwrap_or(ConnectorError::Database(error))),
        }
    }
}

/// A failed read has nothing to roll back, so the driver gets `Ok` in any case.
#[allow(clippy::result_large_err, reason = "it is unwrapped by the caller at once")]
fn keep<T>(outcome: Result<T>) -> std::result::Result<Result<T>, Error> {
    Ok(outcome)
}

/// Converts an error of SQLite.
fn failed(error: rusqlite::Error) -> ConnectorError {
    ConnectorError::Database(error.into())
}

/// A value as a parameter of SQLite, which has no booleans and stores JSON as text.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer((*value).into())),
            Value::Int(value) => ToSqlOutput::Borrowed(ValueRef::Integer(*value)),
            Value::Float(value) => ToSqlOutput::Borrowed(ValueRef::Real(*value)),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            // SQLite has no decimals: a number with more digits than a float is rounded to one.
            Value::Json(json) if json.is_number() => match json.text().parse::<f64>() {
                Ok(number) => ToSqlOutput::Borrowed(ValueRef::Real(number)),
                Err(_) => ToSqlOutput::Borrowed(ValueRef::Text(json.text().as_bytes())),
            },
            Value::Json(json) => ToSqlOutput::Borrowed(ValueRef::Text(json.text().as_bytes())),
        })
    }
}

impl Sql<'_> {
    /// The bound values as parameters of SQLite.
    fn bound(&self) -> impl Iterator<Item = Bound<'_>> {
        self.binds.iter().map(|bind| match bind {
            Bind::Value(value) => Bound(value),
            // The builder makes arrays for PostgreSQL only.
            Bind::Array(_) => Bound(&Value::Null),
        })
    }
}
