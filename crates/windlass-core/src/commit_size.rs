//! How many items one commit has.

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// `chunk.commit`: a number of items, or `"auto"` for as many as take about `chunk.commit_time`.
///
/// ```
/// use windlass_core::CommitSize;
///
/// assert_eq!(serde_json::from_str::<CommitSize>("\"auto\"").unwrap(), CommitSize::Auto);
/// assert_eq!(serde_json::to_string(&CommitSize::Items(500)).unwrap(), "500");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommitSize {
    /// As many items as take about `chunk.commit_time`; at most the whole chunk.
    #[default]
    Auto,
    /// This many items.
    Items(u32),
}

impl CommitSize {
    pub(crate) fn is_auto(&self) -> bool {
        *self == CommitSize::Auto
    }
}

impl Serialize for CommitSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CommitSize::Auto => serializer.serialize_str("auto"),
            CommitSize::Items(items) => serializer.serialize_u32(*items),
        }
    }
}

impl<'de> Deserialize<'de> for CommitSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommitSizeVisitor)
    }
}

struct CommitSizeVisitor;

impl Visitor<'_> for CommitSizeVisitor {
    type Value = CommitSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of items, or \"auto\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CommitSize, E> {
        match text {
            "auto" => Ok(CommitSize::Auto),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, items: u64) -> Result<CommitSize, E> {
        let too_many = || E::invalid_value(de::Unexpected::Unsigned(items), &self);
        Ok(CommitSize::Items(u32::try_from(items).map_err(|_| too_many())?))
    }

    fn visit_i64<E: de::Error>(self, items: i64) -> Result<CommitSize, E> {
        match u64::try_from(items) {
            Ok(items) => self.visit_u64(items),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(items), &self)),
        }
    }
}
