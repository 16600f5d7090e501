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
    /// The keys.
    pub keys: Keys,
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
    /// A key set that is a key range.
    pub fn range(after: Option<Key>, upto: Option<Key>) -> KeySet {
        KeySet { within: None, keys: Keys::Range(KeyRange { after, upto }) }
    }

    /// A key set of exactly these keys.
    pub fn keys(keys: Vec<Key>) -> KeySet {
        KeySet { within: None, keys: Keys::List(keys) }
    }
}
