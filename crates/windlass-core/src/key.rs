//! Keys, and the half-open key ranges of chunks.

use crate::Value;
use serde::{Deserialize, Serialize};

/// A record's key: the values of the key columns, in the order the job type names them.
///
/// ```
/// use windlass_core::{Key, Value};
///
/// let key = Key(vec![Value::from(7), Value::from("Kent")]);
/// assert_eq!(key.to_id(), serde_json::json!([7, "Kent"]));
/// assert_eq!(Key::from_id(key.to_id()), key);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub Vec<Value>);

impl Key {
    /// The key as in `ids` of a request: the value itself, or a list for several columns.
    pub fn to_id(&self) -> serde_json::Value {
        match self.0.as_slice() {
            [single] => single.to_json(),
            several => serde_json::Value::Array(several.iter().map(Value::to_json).collect()),
        }
    }

    /// Reads what [`Key::to_id`] wrote.
    pub fn from_id(id: serde_json::Value) -> Key {
        match id {
            serde_json::Value::Array(parts) => {
                Key(parts.into_iter().map(Value::from_json).collect())
            }
            single => Key(vec![Value::from_json(single)]),
        }
    }

    /// Whether one of its values is null. No comparison finds the record of such a key.
    pub fn has_null(&self) -> bool {
        self.0.iter().any(Value::is_null)
    }

    /// Writes [`Key::to_text`] to a writer that cannot fail, such as a hash.
    pub fn write_text(&self, to: impl std::io::Write) {
        // Plain values can always be written.
        let _ = serde_json::to_writer(to, self);
    }

    /// The text of the key in the ledger and the store.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The form of [`Key::to_id`] for serde: `#[serde(with = "windlass_core::key::id")]`.
pub mod id {
    use super::{Key, Value};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the value itself, or a list for several columns.
    pub fn serialize<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
        match key.0.as_slice() {
            [single] => single.serialize(serializer),
            several => several.serialize(serializer),
        }
    }

    /// Reads what [`serialize`] wrote.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Json(json) => Key::from_id(json.to_value()),
            single => Key(vec![single]),
        })
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, value) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(", ")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}

/// The records whose key is greater than `after` and at most `upto`, in the database's own order.
/// `None` means no bound on that side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The exclusive lower bound.
    pub after: Option<Key>,
    /// The inclusive upper bound.
    pub upto: Option<Key>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: KeyRange = KeyRange { after: None, upto: None };

    /// Splits the range at these ascending keys into ranges that cover it without overlap: each begins where
    /// the previous one ends. A split at the end of the range adds no empty range.
    pub fn cut(&self, cuts: impl IntoIterator<Item = Key>) -> Vec<KeyRange> {
        let mut ranges = Vec::new();
        let mut after = self.after.clone();
        for cut in cuts {
            let upto = Some(cut);
            ranges.push(KeyRange { after, upto: upto.clone() });
            after = upto;
        }
        if after != self.upto || ranges.is_empty() {
            ranges.push(KeyRange { after, upto: self.upto.clone() });
        }
        ranges
    }

    /// Checks that these ranges, in order, tile this one: no gap and no overlap.
    ///
    /// # Errors
    /// The first range that leaves a gap or overlaps.
    pub fn check_tiling<'a>(
        &self,
        ranges: impl IntoIterator<Item = &'a KeyRange>,
    ) -> Result<(), NotTiled> {
        let mut reached = &self.after;
        let mut any = false;
        for (place, range) in ranges.into_iter().enumerate() {
            if &range.after != reached {
                return Err(NotTiled { place });
            }
            reached = &range.upto;
            any = true;
        }
        if any && reached == &self.upto { Ok(()) } else { Err(NotTiled { place: usize::MAX }) }
    }
}

/// Ranges that leave a gap or overlap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ranges do not tile: range {place} does not begin where the previous one ends")]
pub struct NotTiled {
    /// The index of the range; `usize::MAX` if the last one does not reach the end.
    pub place: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::any_value;
    use proptest::prelude::*;

    /// Sorted distinct keys of two columns: what an index walk would return.
    fn sorted_keys() -> impl Strategy<Value = Vec<(i64, String)>> {
        proptest::collection::btree_set((-50i64..50, "[a-c]{0,2}"), 1..60)
            .prop_map(|set| set.into_iter().collect())
    }

    fn key((number, text): &(i64, String)) -> Key {
        Key(vec![Value::Int(*number), Value::from(text.as_str())])
    }

    fn pair(key: &Key) -> (i64, String) {
        match key.0.as_slice() {
            [Value::Int(number), Value::Text(text)] => (*number, text.clone()),
            other => panic!("not a test key: {other:?}"),
        }
    }

    fn contains(range: &KeyRange, probe: &(i64, String)) -> bool {
        range.after.as_ref().is_none_or(|after| *probe > pair(after))
            && range.upto.as_ref().is_none_or(|upto| *probe <= pair(upto))
    }

    proptest! {
        #[test]
        fn cut_ranges_hold_every_key_exactly_once(keys in sorted_keys(), every in 1usize..9) {
            let whole = KeyRange { after: None, upto: keys.last().map(key) };
            let cuts: Vec<Key> = keys.chunks(every).map(|c| key(c.last().unwrap())).collect();
            let ranges = whole.cut(cuts);
            for probe in &keys {
                let holders = ranges.iter().filter(|range| contains(range, probe)).count();
                prop_assert_eq!(holders, 1, "{:?}", probe);
            }
            prop_assert!(whole.check_tiling(&ranges).is_ok());
        }

        #[test]
        fn a_missing_or_doubled_range_is_found(keys in sorted_keys(), drop in any::<prop::sample::Index>()) {
            let whole = KeyRange { after: None, upto: keys.last().map(key) };
            let mut ranges = whole.cut(keys.iter().map(key));
            let at = drop.index(ranges.len());
            let removed = ranges.remove(at);
            prop_assert!(whole.check_tiling(&ranges).is_err());
            ranges.insert(at, removed.clone());
            ranges.insert(at, removed);
            prop_assert!(whole.check_tiling(&ranges).is_err());
        }

        #[test]
        fn keys_round_trip(values in proptest::collection::vec(any_value(), 1..4)) {
            let original = Key(values);
            let text = serde_json::to_string(&original).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Key>(&text).unwrap(), &original);
            prop_assert_eq!(&text, &original.to_text());
            prop_assert_eq!(Key::from_id(original.to_id()), original);
        }
    }
}
