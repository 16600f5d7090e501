//! Which records a chunk holds.

use crate::{Key, KeyRange, Value};
use serde::{Deserialize, Serialize};

/// The records of a chunk: a part of the source's keys, within one value of a filter when the
/// segment was loaded by that filter's index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeySet {
    /// The filter value the segment was loaded by. Ranges of different values overlap as ranges
    /// and are disjoint only together with it.
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
    /// An key_set that is a plain key range.
    pub fn range(after: Option<Key>, upto: Option<Key>) -> KeySet {
        KeySet { within: None, keys: Keys::Range(KeyRange { after, upto }) }
    }

    /// An key_set of exactly these keys.
    pub fn keys(keys: Vec<Key>) -> KeySet {
        KeySet { within: None, keys: Keys::List(keys) }
    }
}
