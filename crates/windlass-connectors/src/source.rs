//! What reading returns.

use windlass_core::{Key, KeySet, Record, Value};

/// Chunks cut out of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkPage {
    /// Each chunk with the number of its records.
    pub chunks: Vec<(KeySet, i64)>,
    /// The key the last chunk ends at; `None` when nothing was cut.
    pub last: Option<Key>,
    /// Whether the range is used up, or the limit of records is reached.
    pub done: bool,
}

/// One part of a source that its database numbers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanSegment {
    /// Which part, counted from zero.
    pub number: u32,
    /// Of how many.
    pub of: u32,
}

/// One record with its place and its version.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its key.
    pub key: Key,
    /// The value of the version column; null when the job type has none.
    pub version: Value,
    /// The record.
    pub record: Record,
}

/// Records read together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The records, in key order.
    pub items: Vec<Item>,
    /// Whether the key_set has no more.
    pub end: bool,
}

impl Batch {
    /// Of what was read with one record more than the limit, which tells whether there is more: a
    /// batch that ends its chunk must not cost another look.
    pub(crate) fn of(mut items: Vec<Item>, all: bool, limit: u32) -> Batch {
        let end = all && items.len() <= limit as usize;
        items.truncate(limit as usize);
        Batch { items, end }
    }
}

/// A record before and after a statement that was taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Its key.
    pub key: Key,
    /// As it is.
    pub before: Record,
    /// As it would be; `None` when the statement deletes it.
    pub after: Option<Record>,
}

impl Preview {
    /// Each record with what became of it, by their keys.
    pub(crate) fn pair(before: Vec<Item>, mut after: Vec<Item>) -> Vec<Preview> {
        let pair = |item: Item| {
            let place = after.iter().position(|after| after.key == item.key);
            let after = place.map(|place| after.swap_remove(place).record);
            Preview { key: item.key, before: item.record, after }
        };
        before.into_iter().map(pair).collect()
    }

    /// How many records are shown.
    pub(crate) const SHOWN: u64 = 20;
}
