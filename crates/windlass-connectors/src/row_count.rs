//! How many rows a source has: counted if it is small, estimated otherwise.

use crate::Scope;
use crate::predicate::{Bounds, push_key_set, relation};
use crate::sql::{Dialect, Sql};
use windlass_core::KeySet;

/// How many rows a source has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCount {
    /// All rows were counted.
    Counted(u64),
    /// The database's estimate.
    Estimated(u64),
    /// There are more than were counted, and the database has no estimate.
    MoreThan(u64),
}

impl RowCount {
    /// The number of rows.
    pub fn rows(self) -> u64 {
        match self {
            RowCount::Counted(rows) | RowCount::Estimated(rows) | RowCount::MoreThan(rows) => rows,
        }
    }
}

/// The most rows that are counted.
pub(crate) const MAX_COUNTED_ROWS: u64 = 100_000;

/// Selects a constant for each record of the source that matches `source.where`.
pub(crate) fn select_all<'a>(dialect: Dialect, scope: &'a Scope, all: &'a KeySet) -> Sql<'a> {
    let mut sql = Sql::new(dialect, format!("SELECT 1 FROM {} WHERE ", relation(dialect, scope)));
    push_key_set(&mut sql, scope, all, None, Bounds::All);
    sql
}

/// Counts these records up to one more than the limit.
pub(crate) fn count_some(select: &str) -> String {
    format!("SELECT count(*) FROM ({select} LIMIT {}) AS counted", MAX_COUNTED_ROWS + 1)
}

/// The result of [`count_some`], or what else is known.
pub(crate) fn counted(counted: u64, otherwise: Option<u64>) -> RowCount {
    match (counted <= MAX_COUNTED_ROWS, otherwise) {
        (true, _) => RowCount::Counted(counted),
        (false, Some(rows)) => RowCount::Estimated(rows.max(MAX_COUNTED_ROWS)),
        (false, None) => RowCount::MoreThan(MAX_COUNTED_ROWS),
    }
}
