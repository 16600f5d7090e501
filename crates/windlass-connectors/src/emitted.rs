//! Rows that items emit. They are inserted next to the ledger in the transaction that commits their
//! item, so each exists exactly once.

use crate::ledger::item_key;
use windlass_core::{Change, ChunkId, Insert, Key, Row, Value};

/// A row that an item emitted.
///
/// ```
/// use windlass_connectors::{Emitted, EmittedCursor};
///
/// let cursor = EmittedCursor { chunk: 0, item_key: "[1]".to_owned(), seq: 0 };
/// let row = Emitted { cursor, fields: r#"{"total": 7}"#.to_owned() };
/// assert!(row.cursor > EmittedCursor::default());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Its position in the job's output.
    pub cursor: EmittedCursor,
    /// The row as JSON text.
    pub fields: String,
}

/// A position in the output of a job: rows are ordered by chunk, then by item, then by the order in
/// which the item emitted them. The default is the position before the first row.
///
/// ```
/// use windlass_connectors::EmittedCursor;
///
/// let start = EmittedCursor::default();
/// assert!(start < EmittedCursor { chunk: 0, item_key: "[1]".into(), seq: 0 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmittedCursor {
    /// The chunk number.
    pub chunk: i64,
    /// The item's key, as the ledger stores it.
    pub item_key: String,
    /// The number of the row among those of its item, from zero.
    pub seq: i64,
}

impl Default for EmittedCursor {
    fn default() -> EmittedCursor {
        EmittedCursor { chunk: -1, item_key: String::new(), seq: -1 }
    }
}

/// The table of emitted rows.
pub(crate) const TABLE: &str = "windlass_emitted";

/// Turns the rows that an item emits into rows to insert.
pub fn keep_emitted(mut change: Change, chunk: ChunkId, key: &Key) -> Change {
    if change.emit.is_empty() {
        return change;
    }
    let row = |(seq, fields): (i64, Row)| {
        Row::from([
            ("job_id".to_owned(), Value::Text(chunk.job.to_string())),
            ("chunk".to_owned(), Value::Int(chunk.number)),
            ("item_key".to_owned(), Value::Text(item_key(&key.to_text()).into_owned())),
            ("seq".to_owned(), Value::Int(seq)),
            ("fields".to_owned(), Value::from_row(fields)),
        ])
    };
    let rows = (0..).zip(std::mem::take(&mut change.emit)).map(row).collect();
    change.insert.push(Insert { table: TABLE.to_owned(), rows });
    change
}
