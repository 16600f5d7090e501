//! How far a segment is planned, as stored in the store.

use crate::{Key, Value};
use serde::{Deserialize, Serialize};

/// The state of a segment's planning, committed with the chunks it produced, so that planning continues
/// after a crash between two pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum PaginationState {
    /// The job is not split into segments yet. Every job begins with this.
    Plan,
    /// All chunks are completed and their parts are merged. Jobs with fan-in end with this.
    Merge,
    /// A part of the whole table, walked by its key.
    TableScan {
        /// The index of the segment, counted from 0.
        segment: u32,
        /// The number of segments.
        total_segments: u32,
        /// The last key that was enqueued, by column.
        last_evaluated_key: Option<LastKey>,
        /// How many items are enqueued so far.
        items_enqueued: u64,
    },
    /// Lookups in a filter's index, one value after the other.
    IndexQuery {
        /// The filter's name.
        filter: String,
        /// The values that remain; the first is in progress.
        remaining_values: Vec<Value>,
        /// The last key of the first value that was enqueued, by column.
        last_evaluated_key: Option<LastKey>,
        /// How many items are enqueued so far.
        items_enqueued: u64,
    },
}

/// A key with its column names.
pub type LastKey = serde_json::Map<String, serde_json::Value>;

/// Adds the column names to a key.
pub fn name_key(columns: &[String], key: &Key) -> LastKey {
    columns.iter().cloned().zip(key.0.iter().map(Value::to_json)).collect()
}

/// Reads what [`name_key`] wrote; a column that is missing reads as null.
pub fn unname_key(columns: &[String], named: &LastKey) -> Key {
    let value = |column| named.get(column).cloned().unwrap_or_default();
    Key(columns.iter().map(|column| Value::from_json(value(column))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::any_value;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn is_written_as_the_contract_says() {
        let key = Key(vec![Value::from("a-1")]);
        let state = PaginationState::TableScan {
            segment: 3,
            total_segments: 10,
            last_evaluated_key: Some(name_key(&["identifier".to_owned()], &key)),
            items_enqueued: 120,
        };
        assert_eq!(
            serde_json::to_value(&state).unwrap(),
            json!({"type": "TABLE_SCAN", "segment": 3, "totalSegments": 10,
                   "lastEvaluatedKey": {"identifier": "a-1"}, "itemsEnqueued": 120})
        );
        let state = PaginationState::IndexQuery {
            filter: "reportingYears".to_owned(),
            remaining_values: vec![Value::from("2024"), Value::from("2025")],
            last_evaluated_key: None,
            items_enqueued: 0,
        };
        assert_eq!(
            serde_json::to_value(&state).unwrap(),
            json!({"type": "INDEX_QUERY", "filter": "reportingYears",
                   "remainingValues": ["2024", "2025"], "lastEvaluatedKey": null, "itemsEnqueued": 0})
        );
    }

    proptest! {
        #[test]
        fn round_trips(values in proptest::collection::vec(any_value(), 2), n in any::<u32>()) {
            let columns = ["a".to_owned(), "b".to_owned()];
            let key = Key(values.clone());
            let named = name_key(&columns, &key);
            prop_assert_eq!(&unname_key(&columns, &named), &key);
            for state in [
                PaginationState::Plan,
                PaginationState::TableScan { segment: n, total_segments: n,
                    last_evaluated_key: Some(named.clone()), items_enqueued: n.into() },
                PaginationState::IndexQuery { filter: "f".to_owned(), remaining_values: values.clone(),
                    last_evaluated_key: Some(named.clone()), items_enqueued: n.into() },
            ] {
                let text = serde_json::to_string(&state).unwrap();
                prop_assert_eq!(serde_json::from_str::<PaginationState>(&text).unwrap(), state);
            }
        }
    }
}
