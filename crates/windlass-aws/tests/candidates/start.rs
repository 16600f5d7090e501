//! What *start* puts on the queue, and how it invokes itself (sub-task 4 of the document).

use crate::world::{Plan, World, migrate, refresh};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use windlass_testkit::Moto;
use windlass_testkit::aws::{Failure, Moment};

fn sorted(mut bodies: Vec<Json>) -> Vec<Json> {
    bodies.sort_by_key(Json::to_string);
    bodies
}

/// The states that the events carried, in order.
fn states(world: &World) -> Vec<Json> {
    world.bus.details().iter().map(|detail| detail["paginationState"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_job_type_has_its_message() {
    let world = World::new().await;
    world.candidates(3).await;
    world.periods(&["2024", "2025"]).await;
    let ids = ["c0", "c1", "c2"];
    world.load(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    assert_eq!(world.bodies(&world.work).await, sorted(ids.map(refresh).into()));
    world.load(json!({"jobType": "MIGRATE_CANDIDATES"})).await;
    assert_eq!(world.bodies(&world.work).await, sorted(ids.map(migrate).into()));
    world.load(json!({"jobType": "REFRESH_PERIODS"})).await;
    let period = |year| json!({"type": "REFRESH_PERIOD", "year": year});
    assert_eq!(world.bodies(&world.work).await, ["2024", "2025"].map(period));
    world.load(json!({"jobType": "REFRESH_PERIODS", "filter": {"reportingYears": ["2025"]}})).await;
    assert_eq!(world.bodies(&world.work).await, ["2025"].map(period));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_filter_segments_of_the_table_are_loaded_side_by_side() {
    let world = World::new().await;
    world.candidates(60).await;
    for (request, total) in [
        (json!({"jobType": "REFRESH_CANDIDATES"}), 10),
        (json!({"jobType": "REFRESH_CANDIDATES", "filter": null, "parallelSegments": null}), 10),
        (
            json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": []},
                "parallelSegments": 3}),
            3,
        ),
    ] {
        let before = world.bus.details().len();
        let scans = world.gateway.count("Scan");
        world.load(request).await;
        let states = &states(&world)[before..];
        let segment = |n| {
            json!({"type": "TABLE_SCAN", "segment": n, "totalSegments": total,
                   "lastEvaluatedKey": null, "itemsEnqueued": 0})
        };
        assert_eq!(states, (0..total).map(segment).collect::<Vec<_>>());
        assert_eq!(world.gateway.count("Scan") - scans, total);
        let bodies = world.bodies(&world.work).await;
        let ids: BTreeSet<String> = bodies.iter().map(Json::to_string).collect();
        assert_eq!((bodies.len(), ids.len()), (60, 60), "every candidate once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_filter_the_years_are_looked_up_one_after_the_other() {
    let world = World::new().await;
    world.candidates(9).await;
    world.start.set("LOAD_SECONDS", "0");
    world
        .load(json!({"jobType": "REFRESH_CANDIDATES",
                     "filter": {"reportingYears": ["2024", "2025"]}}))
        .await;
    let year = |years: &[&str], enqueued| {
        json!({"type": "YEAR_QUERY", "remainingYears": years, "lastEvaluatedKey": null,
               "itemsEnqueued": enqueued})
    };
    assert_eq!(states(&world), [year(&["2024", "2025"], 0), year(&["2025"], 3)]);
    let expected = ["c1", "c4", "c7", "c2", "c5", "c8"].map(refresh);
    assert_eq!(world.bodies(&world.work).await, sorted(expected.into()));
    assert_eq!(world.gateway.count("Scan"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn years_are_looked_up_side_by_side_where_the_job_type_says_so() {
    let plan = Plan { refresh: "queue.side_by_side = true", ..Plan::default() };
    let world = World::with(Moto::shared(), plan).await;
    world.candidates(9).await;
    let years = ["2024", "2025", "2024"];
    let request = json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": years}});
    world.load(request).await;
    let year = |year| {
        json!({"type": "YEAR_QUERY", "remainingYears": [year], "lastEvaluatedKey": null,
               "itemsEnqueued": 0})
    };
    assert_eq!(states(&world), ["2024", "2025"].map(year));
    assert_eq!(world.bodies(&world.work).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_invokes_itself_with_its_cursor_until_it_is_complete() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let world = World::with(Moto::shared(), plan).await;
    world.candidates(30).await;
    world.start.set("LOAD_SECONDS", "0");
    for request in [
        json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 1}),
        json!({"jobType": "REFRESH_CANDIDATES",
               "filter": {"reportingYears": ["2023", "2024", "2025"]}}),
    ] {
        let before = world.bus.details().len();
        let job = world.load(request).await;
        let details = &world.bus.details()[before..];
        assert!(details.len() >= 8, "{details:?}");
        let mut enqueued = 0;
        for detail in &details[1..] {
            assert_eq!(detail["jobId"], *job);
            let state = &detail["paginationState"];
            assert!(state["itemsEnqueued"].as_u64().unwrap() >= enqueued, "{details:?}");
            enqueued = state["itemsEnqueued"].as_u64().unwrap();
        }
        let bodies = world.bodies(&world.work).await;
        let ids: BTreeSet<String> = bodies.iter().map(Json::to_string).collect();
        assert_eq!((bodies.len(), ids.len()), (30, 30), "every candidate once");
    }
    // With time left it goes on by itself.
    let before = world.bus.details().len();
    world.start.set("LOAD_SECONDS", "60");
    world.load(json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 2})).await;
    assert_eq!(world.bus.details().len() - before, 2);
    assert_eq!(world.bodies(&world.work).await.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_stops_at_its_limit() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let world = World::with(Moto::shared(), plan).await;
    world.candidates(60).await;
    world
        .load(json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["2024"]},
                     "parallelSegments": 1, "maxItemsPerSegment": 10}))
        .await;
    assert_eq!(world.bodies(&world.work).await.len(), 10);
    world
        .load(json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 2,
                     "maxItemsPerSegment": 7}))
        .await;
    assert_eq!(world.bodies(&world.work).await.len(), 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stop_switch_stops_a_load_and_the_same_job_goes_on() {
    let plan = Plan { refresh: "chunk.items = 4", ..Plan::default() };
    let world = World::with(Moto::shared(), plan).await;
    world.candidates(30).await;
    let request = json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 1});
    world.start.set("LOAD_SECONDS", "0");
    world.start.set("PROCESSING_ENABLED", "false");
    let answer = world.start.invoke(request.clone()).await.unwrap();
    assert_eq!(answer["stopped"], true);
    world.bus.idle().await;
    assert_eq!((world.bus.details().len(), world.gateway.count("Scan")), (0, 0));
    // In the midst of a load: the state that was next is in the log, and can be sent again.
    world.start.set("PROCESSING_ENABLED", "true");
    let start = world.start.clone();
    world.gateway.at("SendMessageBatch", Moment::After, 3, move || {
        start.set("PROCESSING_ENABLED", "false");
    });
    let first = world.start.invoke(request).await.unwrap();
    world.bus.idle().await;
    let stopped = world.bus.details().last().unwrap().clone();
    let before = world.bodies(&world.work).await.len();
    assert!(before > 0 && before < 30, "{before}");
    world.start.set("PROCESSING_ENABLED", "true");
    assert_eq!(world.load(stopped).await, first["jobId"]);
    assert_eq!(before + world.bodies(&world.work).await.len(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_table_is_loaded_gracefully() {
    let world = World::new().await;
    world.load(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    world
        .load(json!({"jobType": "REFRESH_CANDIDATES", "filter": {"reportingYears": ["1999"]}}))
        .await;
    assert_eq!(world.bodies(&world.work).await, [Json::Null; 0]);
    assert_eq!(world.bus.details().len(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn given_ids_are_queued_each_once() {
    let world = World::new().await;
    let ids = json!(["c2", "c1", "c2"]);
    world.load(json!({"jobType": "REFRESH_CANDIDATES", "ids": ids})).await;
    assert_eq!(world.bodies(&world.work).await, ["c1", "c2"].map(refresh));
    assert_eq!(world.bus.details().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_refuses_some_events_is_asked_again() {
    let world = World::new().await;
    world.candidates(40).await;
    world.bus.refuse_every(3);
    world.load(json!({"jobType": "REFRESH_CANDIDATES"})).await;
    assert_eq!(world.bodies(&world.work).await.len(), 40);
    assert_eq!(world.bus.details().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_is_refused_before_anything_is_sent() {
    let world = World::new().await;
    for (request, expected) in [
        (json!({"jobType": "REFRESH"}), "there is no job type `REFRESH`"),
        (json!({"jobType": "REFRESH_CANDIDATES", "parallelSegments": 0}), "parallelSegments: is 0"),
        (json!({"jobType": "REFRESH_CANDIDATES", "maxItemsPerSegment": 0}), "maxItemsPerSegment"),
        (json!({"jobType": "REFRESH_CANDIDATES", "filter": {"years": ["1"]}}), "filter.years"),
        (json!({"jobType": "REFRESH_CANDIDATES", "reportingYears": ["1"]}), "reportingYears"),
        (json!({"jobType": "REFRESH_CANDIDATES", "ids": []}), "ids: is empty"),
    ] {
        let failure = world.start.invoke(request.clone()).await.unwrap_err();
        let Failure::Error(error) = &failure else { panic!("{failure:?}") };
        let message = error["errorMessage"].as_str().unwrap();
        assert!(message.contains(expected), "{request}: {message}");
    }
    assert_eq!(world.bus.details().len(), 0);
    assert_eq!(world.gateway.count("SendMessageBatch"), 0);
}
