//! The outcome of an item, and the counts of outcomes.

use crate::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of one item, as a step reports it.
///
/// ```
/// use windlass_core::{Change, Outcome, Value};
///
/// // Write one column back.
/// let raised = Outcome::set("balance", 1010);
/// // Write back, insert into another table and skip.
/// let change = Change::default().set("balance", 1010).insert("log", [("text", Value::from("raised"))]);
/// assert_ne!(Outcome::from(change), raised);
/// assert_ne!(Outcome::Skip, raised);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The item is processed, with these effects. There may be none.
    Done(Change),
    /// The item needed no processing.
    Skip,
    /// The item failed.
    Error(ItemError),
}

impl Outcome {
    /// Writes one column back.
    pub fn set(column: impl Into<String>, value: impl Into<Value>) -> Outcome {
        Outcome::Done(Change::default().set(column, value))
    }
}

/// The effects of one item, committed in one transaction with the ledger.
///
/// ```
/// use windlass_core::{Change, Value};
///
/// let change = Change::default().set("balance", 7).insert("log", [("text", Value::from("raised"))]);
/// assert_eq!(change.update["balance"], Value::from(7));
/// assert!(!change.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Changed columns, written back to the item's record under the guard.
    #[serde(default)]
    pub update: BTreeMap<String, Value>,
    /// Rows for other tables of the same database.
    #[serde(default)]
    pub insert: Vec<Insert>,
    /// Rows for the output of the job.
    #[serde(default)]
    pub emit: Vec<Row>,
}

/// A row, column by column.
pub type Row = BTreeMap<String, Value>;

impl Change {
    /// Whether there is no effect.
    pub fn is_empty(&self) -> bool {
        self.update.is_empty() && self.insert.is_empty() && self.emit.is_empty()
    }

    /// Adds a column to write back.
    pub fn set(mut self, column: impl Into<String>, value: impl Into<Value>) -> Change {
        self.update.insert(column.into(), value.into());
        self
    }

    /// Adds a row to insert.
    pub fn insert<'a>(
        mut self,
        table: impl Into<String>,
        row: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Change {
        let row = row.into_iter().map(|(column, value)| (column.to_owned(), value)).collect();
        self.insert.push(Insert { table: table.into(), rows: vec![row] });
        self
    }
}

impl From<Change> for Outcome {
    fn from(change: Change) -> Outcome {
        Outcome::Done(change)
    }
}

/// `{table, rows}` of an `insert`.
///
/// ```
/// use windlass_core::{Change, Value};
///
/// let change = Change::default().insert("log", [("text", Value::from("raised"))]);
/// assert_eq!(change.insert[0].table, "log");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// The table, in the same database as the source.
    pub table: String,
    /// Its new rows, column by column.
    pub rows: Vec<Row>,
}

/// Why an item failed, and whether a retry may help.
///
/// `?` on an ordinary error makes a transient one: the item is retried. Giving up is explicit.
///
/// ```
/// use windlass_core::ItemError;
///
/// fn parse(text: &str) -> Result<i64, ItemError> {
///     if text.is_empty() {
///         return Err(ItemError::permanent("the field is empty"));
///     }
///     Ok(text.parse()?)
/// }
/// assert!(!parse("").unwrap_err().retryable);
/// assert!(parse("x").unwrap_err().retryable);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemError {
    /// What went wrong.
    pub message: String,
    /// Whether a retry may help. Otherwise the item becomes a dead letter at once.
    #[serde(default)]
    pub retryable: bool,
    /// Details, stored with the dead letter.
    #[serde(default)]
    pub context: serde_json::Value,
}

impl ItemError {
    /// A failure that a retry cannot fix: the item becomes a dead letter at once.
    pub fn permanent(message: impl Into<String>) -> ItemError {
        ItemError { message: message.into(), ..ItemError::default() }
    }

    /// A failure that may pass: the item is retried.
    pub fn transient(message: impl Into<String>) -> ItemError {
        ItemError { message: message.into(), retryable: true, ..ItemError::default() }
    }
}

/// An ordinary error is transient: `?` in a handler means that the item is retried. The message holds
/// the error and its sources.
impl<E: std::error::Error> From<E> for ItemError {
    fn from(error: E) -> ItemError {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            // Many errors already repeat their source in their own text.
            if !message.contains(&cause_text) {
                message = format!("{message}: {cause_text}");
            }
            source = cause.source();
        }
        ItemError::transient(message)
    }
}

/// The number of items by outcome, stored in the ledger, the chunk and the job.
///
/// ```
/// use windlass_core::Counts;
///
/// let mut counts = Counts { read: 3, processed: 2, dead: 1, ..Counts::default() };
/// counts += Counts { read: 1, skipped: 1, ..Counts::default() };
/// assert!(counts.add_up());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Records that committed transactions read: the sum of the next three.
    pub read: i64,
    /// Items processed.
    pub processed: i64,
    /// Items skipped.
    pub skipped: i64,
    /// Items that became dead letters.
    pub dead: i64,
    /// Concurrent writes that were detected. Not an outcome, so not part of the sum.
    pub conflicts: i64,
}

impl Counts {
    /// Whether every record read has an outcome: no item is deferred.
    pub fn add_up(&self) -> bool {
        self.read == self.processed + self.skipped + self.dead
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.read += other.read;
        self.processed += other.processed;
        self.skipped += other.skipped;
        self.dead += other.dead;
        self.conflicts += other.conflicts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the service did not answer")]
    struct Unanswered(#[source] std::num::ParseIntError);

    #[test]
    fn an_ordinary_error_is_transient_and_giving_up_is_explicit() {
        fn handler() -> Result<Outcome, ItemError> {
            let source = "x".parse::<i32>().map_err(Unanswered)?;
            Ok(Outcome::set("n", i64::from(source)))
        }
        let error = handler().unwrap_err();
        assert!(error.retryable);
        assert_eq!(error.message, "the service did not answer: invalid digit found in string");
        assert!(!ItemError::permanent("no such customer").retryable);
    }
}
