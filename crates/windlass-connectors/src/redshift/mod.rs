//! Amazon Redshift, as the target of a load. It is loaded with COPY from S3, and cannot be read as a source.
//!
//! Statements have literals instead of parameters, and use only what Redshift has: no `ON CONFLICT`, no `RETURNING`,
//! no arrays, no row locks. Unique keys are not enforced there, so the ledger's table is locked instead.

mod catalog;
mod ledger;
mod load;
mod refused;

use crate::{ConnectorError, Result};
use windlass_core::problem::{Code, Problem};
use windlass_drivers::{Error, Redshift, RedshiftTransaction, TextRow};

/// A Redshift database that results are loaded into.
pub(crate) struct RedshiftConnection {
    db: Redshift,
}

impl RedshiftConnection {
    pub(crate) fn new(db: Redshift) -> RedshiftConnection {
        RedshiftConnection { db }
    }

    /// A transaction on the ledger or the catalog.
    async fn ledger_tx(&self) -> Result<RedshiftTransaction> {
        Ok(self.db.transaction(LEDGER_TIMEOUT_MS).await?)
    }

    /// Runs one statement that only reads.
    async fn read(&self, sql: &str) -> Result<Vec<TextRow>> {
        let transaction = self.ledger_tx().await?;
        let rows = transaction.query(sql).await;
        let _ = transaction.rollback().await;
        Ok(rows?)
    }
}

/// The timeout of a statement on the ledger, and of waiting for its lock.
const LEDGER_TIMEOUT_MS: u32 = 60_000;

/// Commits a transaction whose work succeeded, and rolls it back otherwise.
async fn finish<T>(transaction: RedshiftTransaction, outcome: Result<T>) -> Result<T> {
    match outcome {
        Ok(value) => {
            transaction.commit().await?;
            Ok(value)
        }
        Err(error) => {
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// A text as a literal. A backslash escapes the next character in Redshift.
fn literal(text: &str) -> Result<String> {
    if text.contains('\0') {
        let detail = "a value has a NUL character, which Redshift cannot store";
        return Err(Problem::field(Code::Source, "load", detail).into());
    }
    Ok(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")))
}

/// A statement with its placeholders replaced by literals.
fn fill(sql: &str, values: &[(&str, String)]) -> String {
    let fill =
        |sql: String, (name, value): &(&str, String)| sql.replace(&format!("{{{name}}}"), value);
    values.iter().fold(sql.to_owned(), fill)
}

/// A column of a row, which must not be null.
fn text(row: &TextRow, index: usize) -> Result<&str> {
    let missing = || ConnectorError::Unreadable(format!("column {index} of a row is missing"));
    row.get(index).and_then(Option::as_deref).ok_or_else(missing)
}

/// A column of a row as a number.
fn number(row: &TextRow, index: usize) -> Result<i64> {
    let text = text(row, index)?;
    text.parse().map_err(|_| ConnectorError::Unreadable(format!("`{text}` is not a number")))
}

/// Refuses what Redshift does not serve for.
fn only_loads() -> ConnectorError {
    let detail = "is Redshift, which can only be the connection of a load with `copy`";
    Problem::field(Code::Source, "connection", detail).into()
}

/// An error of the database without its outcome.
fn failed(message: String) -> ConnectorError {
    Error::new(windlass_drivers::ErrorClass::Other, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_placeholders_keep_every_character() {
        assert_eq!(literal(r"O'Hara \ x").unwrap(), r"'O''Hara \\ x'");
        assert!(literal("a\0b").is_err());
        let filled = fill("a = {a} AND b = {b}", &[("a", "1".into()), ("b", "'{a}'".into())]);
        assert_eq!(filled, "a = 1 AND b = '{a}'");
    }
}
