//! The state of a segment, in the form in which events carry it.

use serde::{Deserialize, Serialize};
use windlass_core::PaginationState;
use windlass_core::Value;
use windlass_core::pagination::LastKey;

/// The state of a segment. It is the engine's own, but lookups by year are written as `YEAR_QUERY` with
/// `remainingYears`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct State(pub PaginationState);

/// The filter whose lookups have this special form.
const YEARS: &str = "reportingYears";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Years(Years),
    Other(PaginationState),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
enum Years {
    YearQuery {
        remaining_years: Vec<Value>,
        #[serde(default)]
        last_evaluated_key: Option<LastKey>,
        #[serde(default)]
        items_enqueued: u64,
    },
}

impl From<Written> for State {
    fn from(written: Written) -> State {
        State(match written {
            Written::Other(state) => state,
            Written::Years(Years::YearQuery {
                remaining_years,
                last_evaluated_key,
                items_enqueued,
            }) => PaginationState::IndexQuery {
                filter: YEARS.to_owned(),
                remaining_values: remaining_years,
                last_evaluated_key,
                items_enqueued,
            },
        })
    }
}

impl From<State> for Written {
    fn from(state: State) -> Written {
        match state.0 {
            PaginationState::IndexQuery {
                filter,
                remaining_values,
                last_evaluated_key,
                items_enqueued,
            } if filter == YEARS => Written::Years(Years::YearQuery {
                remaining_years: remaining_values,
                last_evaluated_key,
                items_enqueued,
            }),
            other => Written::Other(other),
        }
    }
}

impl State {
    /// The number of items sent so far.
    pub fn items_enqueued(&self) -> u64 {
        match &self.0 {
            PaginationState::TableScan { items_enqueued, .. }
            | PaginationState::IndexQuery { items_enqueued, .. } => *items_enqueued,
            PaginationState::Plan | PaginationState::Merge => 0,
        }
    }

    /// The state after a page: the rest of this segment or value, then the next value, and `None` when everything is
    /// enqueued.
    pub fn next(self, last_key: Option<LastKey>, enqueued: u64) -> Option<State> {
        let is_end = last_key.is_none();
        match self.0 {
            PaginationState::TableScan { .. } if is_end => None,
            PaginationState::TableScan { segment, total_segments, items_enqueued, .. } => {
                Some(State(PaginationState::TableScan {
                    segment,
                    total_segments,
                    last_evaluated_key: last_key,
                    items_enqueued: items_enqueued + enqueued,
                }))
            }
            PaginationState::IndexQuery {
                filter, mut remaining_values, items_enqueued, ..
            } => {
                if is_end {
                    remaining_values.remove(0);
                }
                (!remaining_values.is_empty()).then_some(State(PaginationState::IndexQuery {
                    filter,
                    remaining_values,
                    last_evaluated_key: last_key,
                    items_enqueued: items_enqueued + enqueued,
                }))
            }
            PaginationState::Plan | PaginationState::Merge => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    /// Parses the text, checks that it serialises to the same text, and returns the state.
    fn round_trip(text: Json) -> State {
        let state: State = serde_json::from_value(text.clone()).unwrap();
        assert_eq!(serde_json::to_value(&state).unwrap(), text);
        state
    }

    fn key(id: &str) -> Option<LastKey> {
        json!({"identifier": id}).as_object().cloned()
    }

    #[test]
    fn a_table_scan_continues_to_its_end() {
        let state = round_trip(json!({"type": "TABLE_SCAN", "segment": 3, "totalSegments": 10,
            "lastEvaluatedKey": {"identifier": "a"}, "itemsEnqueued": 120}));
        assert_eq!(state.items_enqueued(), 120);
        let next = state.next(key("b"), 10).unwrap();
        let expected = json!({"type": "TABLE_SCAN", "segment": 3, "totalSegments": 10,
            "lastEvaluatedKey": {"identifier": "b"}, "itemsEnqueued": 130});
        assert_eq!(next, round_trip(expected));
        assert_eq!(next.next(None, 1), None);
    }

    #[test]
    fn a_year_query_continues_with_the_next_year() {
        let state = round_trip(json!({"type": "YEAR_QUERY", "remainingYears": ["2024", "2025"],
            "lastEvaluatedKey": null, "itemsEnqueued": 0}));
        let next = state.next(key("b"), 10).unwrap();
        assert_eq!(
            next,
            round_trip(json!({"type": "YEAR_QUERY",
            "remainingYears": ["2024", "2025"],
            "lastEvaluatedKey": {"identifier": "b"}, "itemsEnqueued": 10}))
        );
        let next = next.next(None, 5).unwrap();
        assert_eq!(
            next,
            round_trip(json!({"type": "YEAR_QUERY", "remainingYears": ["2025"],
            "lastEvaluatedKey": null, "itemsEnqueued": 15}))
        );
        assert_eq!(next.next(None, 1), None);
    }

    #[test]
    fn a_query_by_another_filter_has_the_engines_form() {
        round_trip(json!({"type": "INDEX_QUERY", "filter": "institutions",
            "remainingValues": [7, "a"], "lastEvaluatedKey": null, "itemsEnqueued": 0}));
    }
}
