//! What requests are accepted and refused.

use super::*;
use crate::{Column, Value};
use serde_json::json;

fn job_type() -> JobType {
    let text = "[jobs.J]\nsource = { connection = \"a\", table = \"t\", key = [\"id\"], \
                filters = { years = \"year\" }, claims = { county = \"county\" } }\n\
                step.sql = \"UPDATE t SET x = :month WHERE {chunk}\"\n";
    crate::Config::parse(text, |_| None).unwrap().jobs["J"].clone()
}

fn check(request: Json) -> Result<(), String> {
    let column = |name: &str, kind| Column {
        name: name.into(),
        kind,
        sql_type: String::new(),
        nullable: false,
    };
    let table = Table {
        columns: vec![column("id", ColumnType::Int), column("year", ColumnType::Int)],
        ..Table::default()
    };
    let claims = [("county".to_owned(), vec![Value::from("X")])].into();
    let identity = Identity { name: "clerk".into(), claims, ..Identity::default() };
    let request: Request = serde_json::from_value(request).map_err(|e| e.to_string())?;
    request.check(&job_type(), &identity, &table).map_err(|problem| problem.to_string())
}

#[test]
fn the_contracts_request_is_accepted_and_round_trips() {
    let text = json!({"jobType": "J", "filter": {"years": ["2024", 2025]}, "parallelSegments": 10,
        "maxItemsPerSegment": 100, "params": {"month": "2025-01"}, "priority": 5,
        "idempotencyKey": "k", "ids": [1, "2"], "onFailed": "run",
        "after": ["0193a0c0-0000-7000-8000-000000000000"]});
    check(text.clone()).unwrap();
    let request: Request = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(serde_json::to_value(&request).unwrap(), text);
}

#[test]
fn whole_numbers_are_read_as_json_schema_understands_them() {
    let read = |number: &str| {
        let text = format!("{{\"jobType\": \"J\", \"priority\": {number}}}");
        serde_json::from_str::<Request>(&text).map(|request| request.priority)
    };
    assert_eq!(read("3").unwrap(), Some(3));
    assert_eq!(read("3.0").unwrap(), Some(3));
    assert_eq!(read("null").unwrap(), None);
    for wrong in ["3.5", "-1", "-1.0", "256", "1e300", "\"3\"", "[]"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn no_filter_null_and_empty_lists_mean_all() {
    for filter in [json!(null), json!({}), json!({"years": null}), json!({"years": []})] {
        let request: Request =
            serde_json::from_value(json!({"jobType": "J", "filter": filter})).unwrap();
        assert_eq!(request.filters().count(), 0);
    }
}

#[test]
fn bad_fields_are_refused_by_name() {
    let month = json!({"month": 1});
    for (request, expected) in [
        (json!({"jobType": "J", "params": month, "parallelSegments": 0}), "parallelSegments"),
        (json!({"jobType": "J", "params": month, "parallelSegments": 100000}), "1 to 1000"),
        (json!({"jobType": "J", "params": month, "maxItemsPerSegment": 0}), "maxItemsPerSegment"),
        (json!({"jobType": "J", "params": month, "priority": 10}), "priority"),
        (
            json!({"jobType": "J", "params": month, "filter": {"months": [1]}}),
            "known filters are `years`",
        ),
        (json!({"jobType": "J", "params": month, "filter": {"years": ["soon"]}}), "filter.years"),
        (json!({"jobType": "J", "params": month, "ids": ["x"]}), "ids[0]"),
        (json!({"jobType": "J", "params": month, "ids": [[1, 2]]}), "the key is (id)"),
        (json!({"jobType": "J", "params": month, "ids": []}), "ids"),
        (json!({"jobType": "J", "params": month, "after": ["x"]}), "invalid"),
        (json!({"jobType": "J", "params": month, "onFailed": "run"}), "onFailed"),
        (json!({"jobType": "J", "params": month, "onFailed": "soon"}), "`cancel`"),
        (json!({"jobType": "J"}), "params.month"),
        (json!({"jobType": "J", "params": {"month": []}}), "params.month"),
        (json!({"jobType": "J", "colour": 1}), "colour"),
    ] {
        let message = check(request.clone()).unwrap_err();
        assert!(message.contains(expected), "{request}: {message}");
    }
}

#[test]
fn a_request_that_is_too_large_is_refused_with_both_figures() {
    let with = |bytes: usize| Request {
        params: [("text".to_owned(), Json::from("x".repeat(bytes)))].into(),
        ..Request::new("J")
    };
    let around = serde_json::to_string(&with(0)).unwrap().len();
    let most = Request::MAX_BYTES;
    with(most - around).check_size().unwrap();
    let error = with(most - around + 1).check_size().unwrap_err().to_string();
    assert!(error.contains("8388609") && error.contains("8388608"), "{error}");
}

#[test]
fn every_limit_is_named_with_both_figures() {
    let long = |bytes: usize| "x".repeat(bytes);
    let id = JobId::nil();
    for (request, field, figures) in [
        (json!({"params": {"a": long(MAX_PARAM_BYTES)}}), "params.a", "65538 bytes as JSON"),
        (json!({"params": {long(201): 1}}), "params", "201 bytes in a name; at most 200"),
        (json!({"filter": {long(201): [1]}}), "filter", "201 bytes in a name; at most 200"),
        (json!({"filter": {"a": vec![1; 10_001]}}), "filter.a", "10001 values; at most 10000"),
        (json!({"filter": {"a": [long(4096)]}}), "filter.a", "4098 bytes in a value"),
        (json!({"ids": [1, long(4096)]}), "ids[1]", "4098 bytes; at most 4096"),
        (json!({"ids": vec![1; MAX_IDS + 1]}), "ids", "500001 keys; at most 500000"),
        (json!({"idempotencyKey": long(256)}), "idempotencyKey", "256 bytes; at most 255"),
        (json!({"after": vec![id; 1001]}), "after", "1001 jobs; at most 1000"),
        (
            json!({"params": (0..101).map(|n| (n.to_string(), n)).collect::<BTreeMap<_, _>>()}),
            "params",
            "101 entries; at most 100",
        ),
    ] {
        let mut request = request;
        request["jobType"] = json!("J");
        let request: Request = serde_json::from_value(request).unwrap();
        let problem = request.check_limits().unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field));
        assert!(problem.detail.contains(figures), "{problem}");
    }
    let most = json!({"jobType": "J", "params": {"a": long(MAX_PARAM_BYTES - 2)},
        "filter": {"a": vec![1; 10_000]}, "ids": [long(4094)], "after": vec![id; 1000],
        "idempotencyKey": long(255)});
    serde_json::from_value::<Request>(most).unwrap().check_limits().unwrap();
}

#[test]
fn a_listing_shows_a_request_without_what_is_large() {
    let request = json!({"jobType": "J", "priority": 3, "ids": [1, 2], "items": [{"a": 1}],
        "params": {"a": "x".repeat(1000), "b": 1}, "filter": {"c": vec![1; 100], "d": [2]},
        "after": vec![JobId::nil(); 30]});
    let (shown, omitted) = serde_json::from_value::<Request>(request).unwrap().summary();
    let expected = json!({"jobType": "J", "priority": 3, "params": {"b": 1},
        "filter": {"d": [2]}});
    assert_eq!(serde_json::to_value(shown).unwrap(), expected);
    let expected = json!({"ids": 2, "items": 1, "params.a": 1002, "filter.c": 100, "after": 30});
    assert_eq!(serde_json::to_value(omitted).unwrap(), expected);
    let small = Request::new("J");
    assert_eq!(small.summary(), (small, BTreeMap::new()));
}

#[test]
fn a_missing_claim_is_a_refusal() {
    let request = Request { params: [("month".into(), json!(1))].into(), ..Request::new("J") };
    let error = request.check(&job_type(), &Identity::default(), &Table::default()).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("claims.county"));
}
