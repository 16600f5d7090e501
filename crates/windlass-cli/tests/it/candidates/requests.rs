//! The requests in the example's files: which candidates they select, and how those are planned.

use crate::candidates::fixture::CandidatesFixture;
use crate::candidates::service::Server;
use serde_json::{Value as Json, json};

const YEARS: &str = include_str!("../../../../../examples/candidates/requests/years.json");
const EXACT_COUNT: &str =
    include_str!("../../../../../examples/candidates/requests/exact-count.json");
const LIMITED_SEGMENTS: &str =
    include_str!("../../../../../examples/candidates/requests/limited-segments.json");

/// This many candidates, and a server with two slots.
async fn served(candidates: u32) -> (CandidatesFixture, Server) {
    let fixture = CandidatesFixture::new(candidates).await;
    let server = Server::start(&fixture.sandbox, 2).await;
    (fixture, server)
}

#[tokio::test]
async fn each_year_is_queried_in_the_index_as_its_own_segment() {
    let (fixture, server) = served(2000).await;
    let id = server.submit(YEARS).await;
    let job = fixture.sandbox.completed(&id).await;
    let these = "reporting_year IN ('2024', '2025')";
    assert_eq!(job["items"]["processed"], fixture.candidates(these).await);
    assert_eq!(fixture.at_version(2, these).await, 1000);
    assert_eq!(fixture.at_version(1, &format!("NOT {these}")).await, 1000);
    let states = fixture.states(&id).await;
    assert_eq!(states.len(), 2, "one segment for each year: {states:#?}");
    for state in &states {
        assert_eq!(state["type"], "INDEX_QUERY", "{state:#}");
        assert_eq!(state["filter"], "reportingYears", "{state:#}");
        assert_eq!(state["itemsEnqueued"], 500, "{state:#}");
    }
    fixture.sandbox.prove(&id).await;
}

#[tokio::test]
async fn one_segment_queries_the_years_one_after_the_other() {
    let (fixture, server) = served(2000).await;
    let mut request: Json = serde_json::from_str(YEARS).unwrap();
    request["parallelSegments"] = 1.into();
    let id = server.submit(&request.to_string()).await;
    fixture.sandbox.completed(&id).await;
    let states = fixture.states(&id).await;
    assert_eq!(states.len(), 1, "{states:#?}");
    assert_eq!(states[0]["itemsEnqueued"], 1000, "{states:#?}");
    assert_eq!(fixture.at_version(2, "reporting_year IN ('2024', '2025')").await, 1000);
    assert_eq!(fixture.at_version(2, "true").await, 1000);
}

#[tokio::test]
async fn a_request_for_an_exact_count_of_a_year_processes_that_many() {
    let (fixture, server) = served(2000).await;
    let job = server.complete(&fixture.sandbox, EXACT_COUNT).await;
    assert_eq!(job["items"]["processed"], 10, "{job:#}");
    assert_eq!(fixture.at_version(2, "reporting_year = '2024'").await, 10);
    assert_eq!(fixture.at_version(2, "true").await, 10);
}

#[tokio::test]
async fn twenty_segments_have_at_most_a_hundred_items_each() {
    let (fixture, server) = served(4000).await;
    let id = server.submit(LIMITED_SEGMENTS).await;
    let job = fixture.sandbox.completed(&id).await;
    let states = fixture.states(&id).await;
    assert_eq!(states.len(), 20, "{states:#?}");
    for (segment, state) in states.iter().enumerate() {
        let of = (&state["type"], &state["segment"], &state["totalSegments"]);
        assert_eq!(of, (&json!("TABLE_SCAN"), &json!(segment), &json!(20)), "{state:#}");
        let enqueued = state["itemsEnqueued"].as_u64().unwrap();
        assert!(enqueued <= 100, "{state:#}");
        assert!(state["lastEvaluatedKey"]["identifier"].is_string(), "{state:#}");
    }
    let enqueued: u64 = states.iter().map(|state| state["itemsEnqueued"].as_u64().unwrap()).sum();
    assert_eq!(job["items"]["processed"], enqueued);
    assert_eq!(fixture.at_version(2, "true").await, enqueued as i64);
    assert!(enqueued < 4000, "the limit had no effect");
}

#[tokio::test]
async fn no_filter_null_and_empty_lists_select_everything_in_ten_segments() {
    let (fixture, server) = served(5000).await;
    let all = [
        json!({"jobType": "REFRESH_CANDIDATES"}),
        json!({"jobType": "REFRESH_CANDIDATES", "filter": null, "parallelSegments": null,
               "maxItemsPerSegment": null}),
        json!({"jobType": "REFRESH_CANDIDATES", "filter": {}}),
        json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": null}}),
        json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": []}}),
    ];
    for (before, request) in (1..).zip(&all) {
        let id = server.submit(&request.to_string()).await;
        let job = fixture.sandbox.completed(&id).await;
        assert_eq!(job["items"]["processed"], 5000, "{request}");
        assert_eq!(fixture.at_version(before + 1, "true").await, 5000, "{request}");
        let states = fixture.states(&id).await;
        assert_eq!(states.len(), 10, "{states:#?}");
        assert!(states.iter().all(|state| state["type"] == "TABLE_SCAN"), "{states:#?}");
    }
}

#[tokio::test]
async fn periods_have_the_same_filter_and_an_empty_year_is_not_a_failure() {
    let (fixture, server) = served(100).await;
    let request = |job_type: &str, years: Json| {
        json!({"jobType": job_type, "filter": {"reportingYears": years}}).to_string()
    };
    let id = server.submit(&request("REFRESH_PERIODS", json!(["2024", "2025"]))).await;
    assert_eq!(fixture.sandbox.completed(&id).await["items"]["processed"], 2);
    let refreshed = "SELECT count(*) FROM periods WHERE version = 2 AND year IN ('2024', '2025')";
    assert_eq!(fixture.number(refreshed).await, 2);
    assert_eq!(fixture.number("SELECT count(*) FROM periods WHERE version = 1").await, 2);
    let id = server.submit(&request("REFRESH_PERIODS", json!([]))).await;
    assert_eq!(fixture.sandbox.completed(&id).await["items"]["processed"], 4);

    for job_type in ["REFRESH_CANDIDATES", "MIGRATE_CANDIDATES", "REFRESH_PERIODS"] {
        let id = server.submit(&request(job_type, json!(["1999"]))).await;
        let job = fixture.sandbox.completed(&id).await;
        assert_eq!(job["items"]["total"], 0, "{job:#}");
    }
    assert_eq!(fixture.at_version(1, "true").await, 100);
}

#[tokio::test]
async fn an_invalid_field_of_a_request_is_named() {
    let fixture = CandidatesFixture::new(100).await;
    let server = Server::start(&fixture.sandbox, 1).await;
    let state = json!({"type": "TABLE_SCAN", "segment": 0, "totalSegments": 1,
                       "lastEvaluatedKey": null, "itemsEnqueued": 0});
    for (request, named) in [
        (json!({"jobType": "REFRESH_CANDIDATE"}), "REFRESH_CANDIDATES"),
        (json!({"jobType": "REFRESH_CANDIDATES", "filter": {"years": ["2024"]}}), "reportingYears"),
        (json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 0}), "parallelSegments"),
        (json!({"jobType": "REFRESH_CANDIDATES", "maxItemsPerSegment": 0}), "maxItemsPerSegment"),
        // The state of a segment cannot be set by a request.
        (json!({"jobType": "REFRESH_CANDIDATES", "paginationState": state}), "paginationState"),
    ] {
        let (status, answer) = server.post(&request.to_string()).await;
        assert!((400..500).contains(&status), "{status}: {answer:#}");
        assert!(answer.to_string().contains(named), "{named} is not in {answer:#}");
    }
    assert_eq!(fixture.sandbox.json("jobs").await, json!([]), "nothing is submitted");
}
