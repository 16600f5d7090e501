//! Which records a chunk holds.

use crate::{Key, KeyRange, Value};
use serde::{Deserialize, Serialize};

/// The records of a chunk: a part of the source's keys, within one value of a filter when the
/// segment was loaded by that filter's index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The filter value the segment was loaded by. Ranges of different values overlap as ranges
    /// and are disjoint only together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<FilterValue>,
    /// The keys.
    pub part: Part,
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
pub enum Part {
    /// Every key in a half-open range.
    Range(KeyRange),
    /// Exactly these keys.
    Keys(Vec<Key>),
}

impl Extent {
    /// An extent that is a plain key range.
    pub fn range(after: Option<Key>, upto: Option<Key>) -> Extent {
        Extent { within: None, part: Part::Range(KeyRange { after, upto }) }
    }

    /// An extent of exactly these keys.
    pub fn keys(keys: Vec<Key>) -> Extent {
        Extent { within: None, part: Part::Keys(keys) }
    }
}
