//! Rows that items emit: inserted beside the ledger in the transaction of their item's commit, so
//! that they are there exactly once too.

use crate::ledger::item_key;
use windlass_core::{Change, ChunkId, Insert, Key, Row, Value};

/// An emitted row, by where it stands in the job's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Its place: the chunk, the item's key as the ledger has it, and its number among the item's rows.
    pub place: (i64, String, i64),
    /// The row as JSON text.
    pub fields: String,
}

/// The table of emitted rows.
pub(crate) const TABLE: &str = "windlass_emitted";

/// The place before all others.
pub const FIRST: (i64, String, i64) = (-1, String::new(), -1);

/// Turns what an item emits into rows to insert.
pub fn keep_emitted(mut change: Change, chunk: ChunkId, key: &Key) -> Change {
    if change.emit.is_empty() {
        return change;
    }
    let row = |(place, fields): (i64, Row)| {
        Row::from([
            ("job_id".to_owned(), Value::Text(chunk.job.to_string())),
            ("chunk".to_owned(), Value::Int(chunk.number)),
            ("item_key".to_owned(), Value::Text(item_key(&key.to_text()).into_owned())),
            ("place".to_owned(), Value::Int(place)),
            ("fields".to_owned(), Value::from_row(fields)),
        ])
    };
    let rows = (0..).zip(std::mem::take(&mut change.emit)).map(row).collect();
    change.insert.push(Insert { table: TABLE.to_owned(), rows });
    change
}
