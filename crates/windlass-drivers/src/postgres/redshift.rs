//! Amazon Redshift. It speaks the protocol of PostgreSQL 8, but lacks many of its settings and types. So every
//! statement is sent in the simple protocol, with literals instead of parameters, and answers with text.

use tokio_postgres::SimpleQueryMessage;

use super::{Postgres, Transaction, settings::Settings};
use crate::{Error, ErrorClass};

/// A Redshift database with a pool of connections. A clone shares the pool.
#[derive(Clone, Debug)]
pub struct Redshift {
    pool: Postgres,
}

/// The values of a row as text.
pub type TextRow = Vec<Option<String>>;

impl Redshift {
    /// Configures the database of this URL. Does not connect yet.
    pub fn new(url: &str, max_connections: usize) -> Result<Redshift, Error> {
        let settings = Settings::parse_redshift(url)?;
        Ok(Redshift { pool: Postgres::with(settings, max_connections)? })
    }

    /// Begins a transaction in which no statement may take longer than this. Zero means no limit.
    pub async fn transaction(&self, timeout_ms: u32) -> Result<RedshiftTransaction, Error> {
        let begin = format!("BEGIN; SET LOCAL statement_timeout TO {timeout_ms}");
        let begun = self.pool.begin_with(&begin).await.map_err(conflict_as_retry)?;
        Ok(RedshiftTransaction { transaction: begun })
    }
}

/// An open transaction, with the same rules as [`Transaction`].
pub struct RedshiftTransaction {
    transaction: Transaction,
}

impl RedshiftTransaction {
    /// Runs a statement and returns its rows.
    pub async fn query(&self, sql: &str) -> Result<Vec<TextRow>, Error> {
        let answer = self.transaction.simple(sql).await.map_err(conflict_as_retry)?;
        let row = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|index| row.get(index).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(answer.into_iter().filter_map(row).collect())
    }

    /// Runs a statement and returns the number of affected rows.
    pub async fn execute(&self, sql: &str) -> Result<u64, Error> {
        let answer = self.transaction.simple(sql).await.map_err(conflict_as_retry)?;
        let rows = answer.iter().map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => *rows,
            _ => 0,
        });
        Ok(rows.sum())
    }

    /// Commits. After an error of the class `Connection` the outcome is unknown. After any other error the
    /// transaction was rolled back.
    pub async fn commit(self) -> Result<(), Error> {
        self.transaction.commit_with("COMMIT").await.map_err(conflict_as_retry)
    }

    /// Rolls back.
    pub async fn rollback(self) -> Result<(), Error> {
        self.transaction.rollback().await
    }
}

/// Redshift reports transactions that cannot be serialized as error 1023, not always with PostgreSQL's SQLSTATE.
fn conflict_as_retry(error: Error) -> Error {
    let is_conflict = error.message.starts_with("1023")
        || error.message.contains("Serializable isolation violation");
    match is_conflict {
        true => Error { class: ErrorClass::Retry, ..error },
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_of_transactions_may_be_retried() {
        for message in ["1023. DETAIL: Serializable isolation violation on table - 7", "1023"] {
            let error = conflict_as_retry(Error::new(ErrorClass::Other, message));
            assert_eq!(error.class, ErrorClass::Retry, "{message}");
        }
        let other = conflict_as_retry(Error::new(ErrorClass::Data, "value too long"));
        assert_eq!(other.class, ErrorClass::Data);
    }
}
