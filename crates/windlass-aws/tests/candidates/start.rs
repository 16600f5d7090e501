//! What *start* sends to the queue, and how it invokes itself.

use crate::fixture::{CandidatesFixture, Plan, migrate, refresh};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use windlass_testkit::Moto;
use windlass_testkit::aws::{Failure, Moment};

fn sorted(mut bodies: Vec<Json>) -> Vec<Json> {
    bodies.sort_by_key(Json::to_string);
    bodies
}

/// The states of the events, in order.
fn states(fixture: &CandidatesFixture) -> Vec<Json> {
    fixture.bus.details().iter().map(|detail| detail["paginationState"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_type_has_its_own_message() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(3).await;
    fixture.periods(&["2024", "2025"]).await;
    let ids = ["c0", "c1", "c2"];
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    assert_eq!(fixture.bodies(&fixture.work).await, sorted(ids.map(refresh).into()));
    fixture.start_job(json!({"jobType": "MIGRATE_CANDIDATES"})).await;
    assert_eq!(fixture.bodies(&fixture.work).await, sorted(ids.map(migrate).into()));
    fixture.start_job(json!({"jobType": "REFRESH_PERIODS"})).await;
    let period = |year| json!({"type": "REFRESH_PERIOD", "year": year});
    assert_eq!(fixture.bodies(&fixture.work).await, ["2024", "2025"].map(period));
    fixture
        .start_job(json!({"jobType": "REFRESH_PERIODS", "filter": {"reportingYears": ["2025"]}}))
        .await;
    assert_eq!(fixture.bodies(&fixture.work).await, ["2025"].map(period));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_filter_segments_of_the_table_are_enqueued_concurrently() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(60).await;
    for (request, total) in [
        (json!({"jobType": "REFRESH_CANDIDATES"}), 10),
        (json!({"jobType": "REFRESH_CANDIDATES", "filter": null, "parallelSegments": null}), 10),
        (
            json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": []},
                "parallelSegments": 3}),
            3,
        ),
    ] {
        let before = fixture.bus.details().len();
        let scans = fixture.gateway.count("Scan");
        fixture.start_job(request).await;
        let states = &states(&fixture)[before..];
        let segment = |n| {
            json!({"type": "TABLE_SCAN", "segment": n, "totalSegments": total,
                   "lastEvaluatedKey": null, "itemsEnqueued": 0})
        };
        assert_eq!(states, (0..total).map(segment).collect::<Vec<_>>());
        assert_eq!(fixture.gateway.count("Scan") - scans, total);
        let bodies = fixture.bodies(&fixture.work).await;
        let ids: BTreeSet<String> = bodies.iter().map(Json::to_string).collect();
        assert_eq!((bodies.len(), ids.len()), (60, 60), "every candidate once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_filter_the_years_are_queried_one_after_the_other() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(9).await;
    fixture.start.set("LOAD_SECONDS", "0");
    fixture
        .start_job(json!({"jobType": "REFRESH_CANDIDATES",
                     "filter": {"reportingYears": ["2024", "2025"]}}))
        .await;
    let year = |years: &[&str], enqueued| {
        json!({"type": "YEAR_QUERY", "remainingYears": years, "lastEvaluatedKey": null,
               "itemsEnqueued": enqueued})
    };
    assert_eq!(states(&fixture), [year(&["2024", "2025"], 0), year(&["2025"], 3)]);
    let expected = ["c1", "c4", "c7", "c2", "c5", "c8"].map(refresh);
    assert_eq!(fixture.bodies(&fixture.work).await, sorted(expected.into()));
    assert_eq!(fixture.gateway.count("Scan"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn years_are_queried_concurrently_if_the_job_type_is_configured_so() {
    let plan = Plan { refresh: "queue.side_by_side = true", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(9).await;
    let years = ["2024", "2025", "2024"];
    let request = json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": years}});
    fixture.start_job(request).await;
    let year = |year| {
        json!({"type": "YEAR_QUERY", "remainingYears": [year], "lastEvaluatedKey": null,
               "itemsEnqueued": 0})
    };
    assert_eq!(states(&fixture), ["2024", "2025"].map(year));
    assert_eq!(fixture.bodies(&fixture.work).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn start_invokes_itself_with_its_cursor_until_everything_is_enqueued() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(30).await;
    fixture.start.set("LOAD_SECONDS", "0");
    for request in [
        json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 1}),
        json!({"jobType": "REFRESH_CANDIDATES",
               "filter": {"reportingYears": ["2023", "2024", "2025"]}}),
    ] {
        let before = fixture.bus.details().len();
        let job = fixture.start_job(request).await;
        let details = &fixture.bus.details()[before..];
        assert!(details.len() >= 8, "{details:?}");
        let mut enqueued = 0;
        for detail in &details[1..] {
            assert_eq!(detail["jobId"], *job);
            let state = &detail["paginationState"];
            assert!(state["itemsEnqueued"].as_u64().unwrap() >= enqueued, "{details:?}");
            enqueued = state["itemsEnqueued"].as_u64().unwrap();
        }
        let bodies = fixture.bodies(&fixture.work).await;
        let ids: BTreeSet<String> = bodies.iter().map(Json::to_string).collect();
        assert_eq!((bodies.len(), ids.len()), (30, 30), "every candidate once");
    }
    // With time left, one invocation handles further pages.
    let before = fixture.bus.details().len();
    fixture.start.set("LOAD_SECONDS", "60");
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 2})).await;
    assert_eq!(fixture.bus.details().len() - before, 2);
    assert_eq!(fixture.bodies(&fixture.work).await.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_stops_at_its_limit() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(60).await;
    fixture
        .start_job(json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["2024"]},
                     "parallelSegments": 1, "maxItemsPerSegment": 10}))
        .await;
    assert_eq!(fixture.bodies(&fixture.work).await.len(), 10);
    fixture
        .start_job(json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 2,
                     "maxItemsPerSegment": 7}))
        .await;
    assert_eq!(fixture.bodies(&fixture.work).await.len(), 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_emergency_stop_stops_start_and_the_same_job_continues_later() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    fixture.candidates(30).await;
    let request = json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 1});
    fixture.start.set("LOAD_SECONDS", "0");
    fixture.start.set("PROCESSING_ENABLED", "false");
    let answer = fixture.start.invoke(request.clone()).await.unwrap();
    assert_eq!(answer["stopped"], true);
    fixture.bus.idle().await;
    assert_eq!((fixture.bus.details().len(), fixture.gateway.count("Scan")), (0, 0));
    // In the middle of a segment: the next state is in the log and can be sent again.
    fixture.start.set("PROCESSING_ENABLED", "true");
    let start = fixture.start.clone();
    fixture.gateway.at("SendMessageBatch", Moment::After, 3, move || {
        start.set("PROCESSING_ENABLED", "false");
    });
    let first = fixture.start.invoke(request).await.unwrap();
    fixture.bus.idle().await;
    let stopped = fixture.bus.details().last().unwrap().clone();
    let before = fixture.bodies(&fixture.work).await.len();
    assert!(before > 0 && before < 30, "{before}");
    fixture.start.set("PROCESSING_ENABLED", "true");
    assert_eq!(fixture.start_job(stopped).await, first["jobId"]);
    assert_eq!(before + fixture.bodies(&fixture.work).await.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_enqueues_nothing() {
    let fixture = CandidatesFixture::new().await;
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    fixture
        .start_job(json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["1999"]}}))
        .await;
    assert_eq!(fixture.bodies(&fixture.work).await, [Json::Null; 0]);
    assert_eq!(fixture.bus.details().len(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_ids_are_enqueued_without_duplicates() {
    let fixture = CandidatesFixture::new().await;
    let ids = json!(["c2", "c1", "c2"]);
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES", "ids": ids})).await;
    assert_eq!(fixture.bodies(&fixture.work).await, ["c1", "c2"].map(refresh));
    assert_eq!(fixture.bus.details().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_bus_refuses_are_sent_again() {
    let fixture = CandidatesFixture::new().await;
    fixture.candidates(40).await;
    fixture.bus.refuse_every(3);
    fixture.start_job(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    assert_eq!(fixture.bodies(&fixture.work).await.len(), 40);
    assert_eq!(fixture.bus.details().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_is_refused_before_anything_is_sent() {
    let fixture = CandidatesFixture::new().await;
    for (request, expected) in [
        (json!({"jobType": "REFRESH"}), "there is no job type `REFRESH`"),
        (
            json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 0}),
            "parallelSegments: must be 1 to 1000",
        ),
        (json!({"jobType": "REFRESH_CANDIDATES", "maxItemsPerSegment": 0}), "maxItemsPerSegment"),
        (json!({"jobType": "REFRESH_CANDIDATES", "filter": {"years": ["1"]}}), "filter.years"),
        (json!({"jobType": "REFRESH_CANDIDATES", "reportingYears": ["1"]}), "reportingYears"),
        (json!({"jobType": "REFRESH_CANDIDATES", "ids": []}), "ids: is empty"),
    ] {
        let failure = fixture.start.invoke(request.clone()).await.unwrap_err();
        let Failure::Error(error) = &failure else { panic!("{failure:?}") };
        let message = error["errorMessage"].as_str().unwrap();
        assert!(message.contains(expected), "{request}: {message}");
    }
    assert_eq!(fixture.bus.details().len(), 0);
    assert_eq!(fixture.gateway.count("SendMessageBatch"), 0);
}
