//! The records of a chunk.

use crate::{Key, KeyRange, Value};
use serde::{Deserialize, Serialize};

/// The records of a chunk: a set of keys, within one value of a filter if the segment was planned by the
/// index of that filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeySet {
    /// The filter value that the segment was planned by. Key ranges of different values may overlap; with
    /// the value they are disjoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<FilterValue>,
    /// The blocks of the table that the records are in, if the source was cut by blocks. Blocks of different
    /// chunks are disjoint; only the chunk's snapshot says what is in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<BlockRange>,
    /// The number of the job's read snapshot that the chunk is read under. `None` if it is read at its own
    /// instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<i64>,
    /// The keys.
    pub keys: Keys,
}

/// Blocks of a table, which PostgreSQL stores one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRange {
    /// The first block.
    pub from: u64,
    /// The block after the last one. `None` for all further blocks.
    pub before: Option<u64>,
}

/// One value of one request filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilterValue {
    /// The filter's name in the request.
    pub filter: String,
    /// The value that the filter's column has in every record of the chunk.
    pub value: Value,
}

/// A disjoint set of keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// Every key in a half-open range.
    Range(KeyRange),
    /// Exactly these keys.
    List(Vec<Key>),
}

impl KeySet {
    /// These keys, within one value of a filter if there is one.
    pub const fn new(within: Option<FilterValue>, keys: Keys) -> KeySet {
        KeySet { within, blocks: None, snapshot: None, keys }
    }

    /// A key set that is a key range.
    pub fn range(after: Option<Key>, upto: Option<Key>) -> KeySet {
        KeySet::new(None, Keys::Range(KeyRange { after, upto }))
    }

    /// A key set of exactly these keys.
    pub fn keys(keys: Vec<Key>) -> KeySet {
        KeySet::new(None, Keys::List(keys))
    }

    /// All keys in these blocks.
    pub fn blocks(from: u64, before: Option<u64>) -> KeySet {
        let blocks = Some(BlockRange { from, before });
        KeySet { blocks, ..KeySet::range(None, None) }
    }
}
