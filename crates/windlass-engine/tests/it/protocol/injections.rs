//! SQL in every text of a request is refused or treated as a value. A canary table, which no statement names, shows
//! whether such SQL was run.

use crate::protocol::common::*;
use serde_json::{Value as Json, json};
use windlass_core::{Identity, JobStatus, Value};
use windlass_store::DeadLetterFilter;

const PAYLOADS: [&str; 31] = [
    "'; DROP TABLE canary; --",
    "'); DROP TABLE canary; --",
    "\"; DROP TABLE canary; --",
    "`; DROP TABLE canary; --",
    "1; DELETE FROM canary",
    "1 OR 1=1",
    "' OR '1'='1",
    "' OR 1=1 --",
    "\" OR \"\"=\"",
    "') OR ('1'='1",
    "' UNION SELECT * FROM canary --",
    "' AND (SELECT count(*) FROM canary) > 0 --",
    "\\'; DELETE FROM canary; --",
    "\\\\'; DELETE FROM canary; #",
    "'||(SELECT n FROM canary)||'",
    "'+(SELECT n FROM canary)+'",
    "$$; DELETE FROM canary; $$",
    "$1; DELETE FROM canary",
    "?; DELETE FROM canary",
    ":note; DELETE FROM canary",
    "{chunk} OR true",
    "{source}",
    "/* */ OR 1=1 /*",
    "/*! OR 1=1 */",
    "'/**/OR/**/1=1--",
    "%27%20OR%201=1--",
    "\u{2019}; DELETE FROM canary; --",
    "\u{ff07}; DELETE FROM canary; --",
    "e'\\047; DELETE FROM canary; --",
    "0x27; DELETE FROM canary; --",
    "north\n'; DELETE FROM canary; --",
];

/// Requests with a payload in each field.
fn requests(payload: &str) -> Vec<(&'static str, Json, Identity)> {
    let ann = |county: &str| {
        let claims = [("county".to_owned(), vec![Value::from(county)])].into();
        Identity { name: "ann".to_owned(), claims, ..Identity::default() }
    };
    let mut odd = ann("south");
    odd.claims.insert(payload.to_owned(), vec![Value::from(payload)]);
    let mut named = ann("south");
    named.name = payload.to_owned();
    let south = || ann("south");
    let base = |more: Json| {
        let mut request = json!({"jobType": "JOB", "params": {"note": "x"}});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let none = json!({});
    vec![
        ("filter value", base(json!({"filter": {"counties": [payload]}})), south()),
        ("filter values", base(json!({"filter": {"counties": ["south", payload]}})), south()),
        ("filter number", base(json!({"filter": {"years": [payload]}})), south()),
        ("filter name", base(json!({"filter": {payload: ["south"]}})), south()),
        ("param", base(json!({"params": {"note": payload}})), south()),
        ("param name", base(json!({"params": {"note": "x", payload: 1}})), south()),
        ("id", base(json!({"ids": [payload]})), south()),
        ("claim", base(none.clone()), ann(payload)),
        ("claim name", base(none.clone()), odd),
        ("submitter", base(none.clone()), named),
        ("job type", base(json!({"jobType": payload})), south()),
        ("idempotency key", base(json!({"idempotencyKey": payload})), south()),
    ]
}

pub(crate) async fn sql_in_a_request_is_never_run(fixture: EngineFixture) {
    fixture.visits(12).await;
    fixture.app.run("UPDATE visits SET county = 'south' WHERE id <= 6").await;
    fixture.app.run("CREATE TABLE canary (n bigint)").await;
    fixture.app.run("INSERT INTO canary VALUES (1), (2), (4)").await;
    let jobs = job(
        "step.sql = \"UPDATE visits SET note = :note WHERE {chunk}\"",
        "source.filters = { counties = \"county\", years = \"year\" }\n\
         source.claims = { county = \"county\" }",
    );
    let engine = fixture.engine(&jobs).await;
    let worker = Working::start(&engine, "worker", 2);
    let (mut attempts, mut refused) = (0, 0);
    for payload in PAYLOADS {
        for (place, request, identity) in requests(payload) {
            attempts += 1;
            let Ok(request) = serde_json::from_value(request) else {
                refused += 1;
                continue;
            };
            let Ok(submitted) = engine.submit(request, identity).await else {
                refused += 1;
                continue;
            };
            let done = ended(&engine, submitted.id()).await;
            assert_eq!(done.status, JobStatus::Completed, "{place} {payload}: {:?}", done.error);
            assert!(done.items.total <= 6, "{place} {payload}: reaches beyond the claim");
        }
        // Filters for dead letters.
        for filter in [
            DeadLetterFilter { error: Some(payload.to_owned()), ..DeadLetterFilter::default() },
            DeadLetterFilter { job_type: Some(payload.to_owned()), ..DeadLetterFilter::default() },
            DeadLetterFilter {
                fingerprint: Some(payload.to_owned()),
                ..DeadLetterFilter::default()
            },
            DeadLetterFilter {
                submitted_by: Some(payload.to_owned()),
                ..DeadLetterFilter::default()
            },
        ] {
            attempts += 1;
            assert!(engine.store().dead_letters(&filter).await.unwrap().is_empty(), "{payload}");
            assert!(engine.redrive(&filter).await.unwrap().is_empty(), "{payload}");
        }
    }
    worker.stop().await;
    assert_eq!(attempts, PAYLOADS.len() * 16, "attempts");
    assert!(refused >= PAYLOADS.len() * 4, "{refused} refused: numbers, names, ids and job types");
    assert_eq!(fixture.int("SELECT sum(n) + 10 * count(*) FROM canary").await, 37);
    assert_eq!(fixture.int("SELECT count(*) FROM visits").await, 12);
    assert_eq!(
        fixture.int("SELECT count(*) FROM visits WHERE note IS NOT NULL AND id > 6").await,
        0
    );
}

on_each!(sql_in_a_request_is_never_run);

/// On three databases.
#[test]
fn there_are_more_than_nine_hundred_injection_attempts() {
    assert!(PAYLOADS.len() * 16 * 3 > 900);
}
