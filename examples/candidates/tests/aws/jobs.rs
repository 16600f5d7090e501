//! The three job types, run by the two functions with the requests in the example's files.

use crate::stack::{MISSING, Stack};
use crate::table::{field, year};
use serde_json::{Value as Json, json};
use windlass_aws::dead_letters::{self, Which};

const YEARS: &str = include_str!("../../requests/years.json");
const EXACT_COUNT: &str = include_str!("../../requests/exact-count.json");
const LIMITED_SEGMENTS: &str = include_str!("../../requests/limited-segments.json");

fn types(states: &[Json]) -> Vec<&str> {
    states.iter().map(|state| state["type"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_in_the_files_process_the_candidates_they_name() {
    let stack = Stack::with(200).await;
    let states = stack.run(EXACT_COUNT).await;
    assert_eq!(stack.candidates.versions(|_| true).await, [190, 10]);
    assert_eq!(stack.candidates.versions(|one| year(one) != "2024").await, [150]);
    assert_eq!(types(&states), ["YEAR_QUERY"]);

    let states = stack.run(YEARS).await;
    assert_eq!(states[0]["remainingYears"], json!(["2024", "2025"]), "{states:#?}");
    assert!(types(&states).iter().all(|kind| *kind == "YEAR_QUERY"), "{states:#?}");
    assert_eq!(stack.candidates.versions(|one| year(one) == "2024").await, [0, 40, 10]);
    assert_eq!(stack.candidates.versions(|one| year(one) == "2025").await, [0, 50]);
    assert_eq!(stack.candidates.versions(|one| year(one) < "2024").await, [100]);

    let states = stack.run(LIMITED_SEGMENTS).await;
    let begun: Vec<_> = states.iter().filter(|state| state["itemsEnqueued"] == 0).collect();
    assert_eq!(begun.len(), 20, "{states:#?}");
    for state in begun {
        assert_eq!((&state["type"], &state["totalSegments"]), (&"TABLE_SCAN".into(), &20.into()));
    }
    // No segment has a hundred candidates, so all are processed.
    assert_eq!(stack.candidates.versions(|one| year(one) < "2024").await, [0, 100]);
    assert_eq!(stack.candidates.versions(|_| true).await, [0, 100, 90, 10]);
    assert_eq!(stack.letters().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_or_missing_filter_processes_all_periods() {
    let stack = Stack::with(20).await;
    let request =
        |filter: Json| json!({"jobType": "REFRESH_PERIODS", "filter": filter}).to_string();
    stack.run(&request(json!({"reportingYears": ["2024", "2025"]}))).await;
    assert_eq!(stack.periods.versions(|_| true).await, [2, 2]);
    for all in [json!(null), json!({"reportingYears": null}), json!({"reportingYears": []})] {
        let states = stack.run(&request(all)).await;
        let begun = states.iter().filter(|state| state["itemsEnqueued"] == 0);
        assert_eq!(begun.count(), 10, "ten segments by default: {states:#?}");
    }
    assert_eq!(stack.periods.versions(|_| true).await, [0, 0, 0, 2, 2]);
    assert_eq!(stack.candidates.versions(|_| true).await, [20], "candidates are not periods");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_adds_fields_and_candidates_without_an_original_become_dead_letters() {
    let stack = Stack::with(60).await;
    let request = json!({"jobType": "MIGRATE_CANDIDATES"}).to_string();
    stack.run(&request).await;
    assert_eq!(stack.candidates.versions(|_| true).await, [MISSING, 60 - MISSING]);
    for one in stack.candidates.records().await {
        let is_there = |name: &str| field(&one, name).is_some();
        let all = ["title", "channel", "language"].into_iter().all(is_there);
        assert_eq!(all, one["version"].as_n().unwrap() == "2", "{one:?}");
        // A document that is read is restructured; the others still have the old form.
        assert_eq!((is_there("creators"), is_there("creator")), (all, !all), "{one:?}");
        assert!(is_there("points"), "existing fields are kept: {one:?}");
    }
    let which = Which::default();
    let found = dead_letters::list(&stack.dead, &which, 100).await.unwrap();
    assert_eq!(found.len(), MISSING);
    for letter in &found {
        assert_eq!(letter.attempts(), Some(3), "{letter:?}");
        assert!(letter.error().is_some_and(|error| error.contains("original")), "{letter:?}");
        let body: Json = serde_json::from_str(&letter.body).unwrap();
        assert_eq!(body["type"], "MIGRATE_CANDIDATE", "{body}");
        assert_eq!(body.as_object().unwrap().len(), 2, "its type and an identifier: {body}");
    }

    // Without originals the redriven letters fail again. With them they succeed, and no other candidate changes.
    dead_letters::redrive(&stack.dead, &stack.work, &which, None).await.unwrap();
    stack.trigger.drain().await;
    assert_eq!(stack.letters().await, MISSING);
    stack.generate("--originals --candidates 60").await;
    let redriven =
        dead_letters::redrive(&stack.dead, &stack.work, &which, Some(100)).await.unwrap();
    assert_eq!(redriven, MISSING);
    stack.trigger.drain().await;
    assert_eq!(stack.letters().await, 0);
    assert_eq!(stack.candidates.versions(|_| true).await, [0, 60]);
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_candidates_are_processed_and_the_emergency_stop_prevents_it() {
    let stack = Stack::with(60).await;
    let records = stack.candidates.records().await;
    let ids: Vec<&String> =
        records.iter().take(3).map(|one| one["identifier"].as_s().unwrap()).collect();
    let request = json!({"jobType": "REFRESH_CANDIDATES", "ids": ids}).to_string();
    stack.run(&request).await;
    assert_eq!(stack.candidates.versions(|_| true).await, [57, 3]);

    stack.start.set("PROCESSING_ENABLED", "false");
    let all = json!({"jobType": "REFRESH_CANDIDATES"}).to_string();
    let answer = stack.load(&all).await;
    assert_eq!(answer["stopped"], true, "{answer}");
    assert_eq!(stack.trigger.depth().await, 0);
    stack.start.set("PROCESSING_ENABLED", "true");
    stack.run(&all).await;
    assert_eq!(stack.candidates.versions(|_| true).await, [0, 57, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_is_announced_with_its_counts() {
    let stack = Stack::with(40).await;
    let job = stack.load(&json!({"jobType": "MIGRATE_CANDIDATES"}).to_string()).await;
    let id = job["jobId"].as_str().unwrap();
    stack.trigger.drain().await;
    let events = stack.bus.others();
    assert!(!events.is_empty());
    let items = json!({"total": 40, "processed": 40 - MISSING, "skipped": 0, "dead": MISSING});
    for event in &events {
        assert_eq!(event["detail-type"], "BatchJobCompleted");
        let detail = &event["detail"];
        assert_eq!((&detail["jobId"], &detail["items"]), (&job["jobId"], &items), "{detail}");
    }
    let shown = stack.windlass(&format!("job {id} --queue {} --json", stack.work.url())).await.ok();
    let shown: Json = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["status"], &shown["items"]["dead"]), (&"COMPLETED".into(), &items["dead"]));
}
