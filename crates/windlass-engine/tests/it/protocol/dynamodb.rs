//! The protocol on DynamoDB: the tests of other topics that apply, and tests for DynamoDB alone.
//!
//! Not applicable are: user statements and marks (`fan_in`, parts of `halving` and `cancel`); a connection that breaks
//! at COMMIT, because a transaction is one request (its answer is lost here instead); inserting the same row twice,
//! because every table has a key (`reach`); `relay`, because there is no outbox; and what concerns only the
//! store.

use crate::protocol::common::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use windlass_core::{ItemError, Outcome};
use windlass_engine::{Engine, ItemContext};
use windlass_testkit::{Dynamodb, Moto};

macro_rules! on_dynamodb {
    ($($topic:ident: $($test:ident),+;)+) => {$(
        mod $topic {
            $(#[tokio::test]
            async fn $test() {
                crate::protocol::$topic::$test(crate::protocol::common::EngineFixture::dynamodb().await).await;
            })+
        }
    )+};
}

on_dynamodb! {
    ambiguous_commit: a_commit_is_refused_the_second_time,
        a_commit_of_deferred_items_is_refused_the_second_time;
    cancel: emitted_rows_of_a_cancelled_job_are_removed, a_cancellation_fences_the_chunks_it_ends,
        a_job_whose_table_was_dropped_can_be_cancelled,
        a_worker_in_a_handler_commits_nothing_after_a_cancellation,
        a_cancellation_keeps_committed_changes;
    conflicts: both_changes_survive_a_conflict, an_item_succeeds_after_several_conflicts,
        a_conflict_may_be_skipped, a_conflict_may_be_a_dead_letter,
        a_row_deleted_meanwhile_is_skipped,
        a_refresh_writes_every_record_once;
    crash: deferred_items_of_a_killed_process_are_finished_by_the_next,
        an_item_that_kills_its_process_becomes_a_dead_letter;
    definition_errors: a_table_dropped_before_planning_fails_the_job,
        a_table_dropped_before_the_work_fails_the_job,
        a_table_dropped_between_two_commits_of_a_handler_fails_the_job,
        an_insert_into_a_missing_table_fails_the_job;
    export: every_record_is_in_exactly_one_part, orphaned_part_files_are_deleted;
    halving: a_unique_violation_of_an_insert_fails_only_its_item,
        of_two_items_that_insert_the_same_row_one_becomes_a_dead_letter, batches_of_deferred_items_are_halved_too;
    item_errors: a_retryable_error_is_tried_again_until_it_succeeds,
        a_retryable_error_is_a_dead_letter_when_its_attempts_are_used_up,
        a_permanent_error_is_a_dead_letter_at_once,
        a_handler_panic_fails_only_its_item,
        a_record_that_cannot_be_deserialised_is_a_dead_letter;
    items: each_item_is_worked_once_and_a_bad_one_is_a_dead_letter_with_the_whole_item,
        a_redrive_uses_the_items_of_the_first_job, a_dry_run_changes_nothing,
        an_update_of_an_item_is_a_dead_letter_with_the_reason, a_job_continues_after_a_lease_is_lost;
    late_fence: a_late_fence_recreates_a_pruned_row_and_the_confirmation_refuses_it,
        a_late_fence_is_refused_by_a_row_at_a_higher_epoch;
    leases: a_shutdown_hands_chunks_back_and_another_worker_finishes_them,
        heartbeats_extend_a_lease_that_is_shorter_than_the_work,
        a_chunk_that_hangs_fails_at_its_timeout,
        a_worker_whose_lease_was_taken_commits_nothing;
    pruning: the_sums_of_a_completed_job_are_kept, a_job_that_ended_recently_is_kept;
    reach: the_values_of_a_filter_are_planned_as_separate_segments, several_filters_are_combined_with_and,
        an_empty_filter_selects_everything_and_an_unknown_value_nothing,
        duplicate_ids_are_worked_once_and_unknown_ones_skipped,
        a_segment_stops_at_its_item_limit;
    stalled_planner: a_late_page_in_the_middle_is_refused, a_page_sent_twice_is_planned_once;
    redrive: repaired_rows_are_reprocessed, a_dead_letter_that_fails_again_stays_one_letter,
        the_idempotency_key_is_the_same_in_retries_and_redrives,
        a_redrive_keeps_the_identity_of_the_original, two_concurrent_redrives_take_each_letter_once,
        a_dead_letter_is_released_when_its_redrive_is_cancelled;
    stopped_redrive: stopped_by_a_cancellation, stopped_by_a_pause_and_a_cancellation, stopped_by_a_worker_that_dies,
        stopped_by_a_bad_definition, stopped_by_used_up_attempts,
        a_failed_redrive_is_retried_from_its_ledger, emitted_rows_of_a_cancelled_redrive_stay;
}

/// A fixture and its tables.
async fn fixture() -> (EngineFixture, Dynamodb) {
    let tables = Moto::shared().dynamodb();
    let app = crate::protocol::common::TestDatabase::Dynamodb(tables.clone());
    (EngineFixture { app, ..EngineFixture::sqlite().await }, tables)
}

/// An engine whose handler fails on the first tries of every item.
async fn handling(fixture: &EngineFixture, more: &str, failures: u32) -> Engine {
    let work = move |visit: Visit, context: ItemContext| async move {
        match context.attempt() {
            attempt if attempt <= failures => Err(ItemError::transient("not yet")),
            _ => visit.done(),
        }
    };
    fixture.builder(&job(HANDLER, more)).handler("work", work).connect().await.unwrap()
}

/// Every third transaction is answered with an error, before or after it is executed.
async fn complete_while_answers_are_lost(failures: u32, after: bool) {
    // Enough commits that some are lost, even if the next fault is set late.
    const ROWS: i64 = 160;
    let (fixture, tables) = fixture().await;
    fixture.visits(ROWS).await;
    let engine = handling(&fixture, "chunk.items = 30\nchunk.commit = 4", failures).await;
    let job = submit(&engine).await;
    let stop = Arc::new(AtomicBool::new(false));
    let losing = {
        let stop = stop.clone();
        tokio::task::spawn_blocking(move || {
            let mut lost = 0;
            while !stop.load(Ordering::Relaxed) && lost < 10 {
                let seen = tables.requests("TransactWriteItems");
                match after {
                    true => tables.fail_after("TransactWriteItems", 1, "InternalServerError"),
                    false => tables.fail_before("TransactWriteItems", 1, "InternalServerError"),
                }
                lost += 1;
                // One transaction fails, and one does not.
                while tables.requests("TransactWriteItems") < seen + 2
                    && !stop.load(Ordering::Relaxed)
                {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            lost
        })
    };
    let done = work(&engine, job).await;
    stop.store(true, Ordering::Relaxed);
    let lost = losing.await.unwrap();
    proven(&engine, &done).await;
    assert!(lost > 5, "only {lost} answers were lost");
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
}

#[tokio::test]
async fn items_are_processed_once_although_answers_are_lost() {
    complete_while_answers_are_lost(0, true).await;
}

#[tokio::test]
async fn items_are_processed_once_although_commits_never_arrive() {
    complete_while_answers_are_lost(0, false).await;
}

#[tokio::test]
async fn deferred_items_are_processed_once_although_commit_answers_are_lost() {
    complete_while_answers_are_lost(1, true).await;
}

/// A writer that never stops, on the rows of a running job. No change is lost.
#[tokio::test]
async fn a_concurrent_writer_of_the_same_rows_neither_loses_nor_overwrites_changes() {
    const ROWS: i64 = 120;
    let (fixture, tables) = fixture().await;
    fixture.visits(ROWS).await;
    let engine = handling(&fixture, "chunk.items = 30\nchunk.commit = 10", 0).await;
    let job = submit(&engine).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writing = {
        let (stop, tables) = (stop.clone(), tables.clone());
        tokio::task::spawn_blocking(move || {
            let mut writes = 0;
            while !stop.load(Ordering::Relaxed) {
                let id = writes * 7 % ROWS + 1;
                let request = json!({
                    "TableName": "visits",
                    "Key": { "id": { "N": id.to_string() } },
                    "UpdateExpression": "ADD #year :one, #version :one",
                    "ExpressionAttributeNames": { "#year": "year", "#version": "version" },
                    "ExpressionAttributeValues": { ":one": { "N": "1" } },
                });
                tables.call("UpdateItem", request);
                writes += 1;
            }
            writes
        })
    };
    let done = work(&engine, job).await;
    stop.store(true, Ordering::Relaxed);
    let writes = writing.await.unwrap();
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS, 0));
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
    assert_eq!(fixture.int("SELECT sum(year - 2024) FROM visits").await, writes);
    assert_eq!(fixture.int("SELECT sum(version) FROM visits").await, writes + ROWS);
}

/// AWS answers like this if another transaction uses one of the records, or if capacity is short.
#[tokio::test]
async fn a_transaction_conflict_or_throttling_is_neither_a_version_conflict_nor_a_failed_attempt() {
    const ROWS: i64 = 20;
    let (fixture, tables) = fixture().await;
    fixture.visits(ROWS).await;
    let engine = handling(&fixture, "chunk.items = 10", 0).await;
    let reasons =
        "\"CancellationReasons\":[{\"Code\":\"None\"},{\"Code\":\"TransactionConflict\"}]";
    tables.fail_with("TransactWriteItems", 4, "TransactionCanceledException", reasons);
    for operation in ["Scan", "BatchGetItem", "UpdateItem", "TransactWriteItems"] {
        tables.fail_before(operation, 2, "ProvisionedThroughputExceededException");
    }
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.conflicts), (ROWS, 0));
    assert!(chunks(&engine, done.id).await.iter().all(|chunk| chunk.attempts == 0));
    fixture.each_once(ROWS).await;
    fixture.logged_once(ROWS).await;
}

/// A transaction has at most a hundred actions, one of them for the ledger, whatever the job type says.
#[tokio::test]
async fn commits_are_as_large_as_a_transaction_may_be() {
    let (fixture, tables) = fixture().await;
    fixture.visits(250).await;
    let handler = async |visit: Visit, _| Ok(Outcome::set("amount", visit.amount + 1));
    let jobs = job(HANDLER, "chunk.items = 250");
    let engine = fixture.builder(&jobs).handler("work", handler).connect().await.unwrap();
    let done = complete(&engine).await;
    assert_eq!(done.chunks.total, 1);
    assert_eq!(tables.requests("TransactWriteItems"), 3, "99, 99 and 52 items");
    fixture.each_once(250).await;
}

/// If items insert rows, a batch has as many items as fit into a transaction.
#[tokio::test]
async fn items_that_insert_rows_are_committed_in_smaller_batches() {
    let (fixture, _) = fixture().await;
    fixture.visits(120).await;
    let engine = handling(&fixture, "chunk.items = 120", 0).await;
    let done = complete(&engine).await;
    assert_eq!((done.chunks.total, done.items.processed), (1, 120));
    fixture.each_once(120).await;
    fixture.logged_once(120).await;
}

/// The state of a segment contains the key with which DynamoDB ended a page.
#[tokio::test]
async fn segments_are_dynamodb_scan_segments_and_store_the_last_evaluated_key() {
    let (fixture, tables) = fixture().await;
    fixture.visits(100).await;
    let engine = fixture.engine(&job(ADD, "chunk.items = 10")).await;
    let four = asked(json!({ "jobType": "JOB", "parallelSegments": 4 }));
    let id = engine.submit(four, Engine::local_identity()).await.unwrap().id();
    let done = work(&engine, id).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.total, done.items.processed), (100, 100));
    let segments = engine.store().segments(id).await.unwrap();
    let states: Vec<_> = segments.iter().filter(|row| row.segment > 0).collect();
    assert_eq!(states.len(), 4);
    for (n, row) in states.iter().enumerate() {
        let state = serde_json::to_value(&row.state).unwrap();
        assert_eq!((&state["segment"], &state["totalSegments"]), (&json!(n), &json!(4)));
        assert!(state["lastEvaluatedKey"]["id"].is_i64(), "{state}");
    }
    assert!(tables.requests("Scan") >= 4);
    fixture.each_once(100).await;
}

#[tokio::test]
async fn emitted_rows_are_in_the_report() {
    let (fixture, _) = fixture().await;
    fixture.visits(30).await;
    let to = fixture.folder.path().join("report.json");
    let more = format!("chunk.items = 10\nreport = {{ to = \"file:{}\" }}", to.display());
    let handler = async |visit: Visit, _| {
        let row = [("id".to_owned(), visit.id.into())].into();
        Ok(windlass_core::Change { emit: vec![row], ..Default::default() }.into())
    };
    let engine = fixture.builder(&job(HANDLER, &more)).handler("work", handler);
    let done = complete(&engine.connect().await.unwrap()).await;
    assert_eq!(done.items.processed, 30);
    let report = std::fs::read_to_string(to).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&report).unwrap();
    let mut ids: Vec<i64> = rows.iter().filter_map(|row| row["id"].as_i64()).collect();
    ids.sort();
    assert_eq!(ids, (1..=30).collect::<Vec<_>>());
}
