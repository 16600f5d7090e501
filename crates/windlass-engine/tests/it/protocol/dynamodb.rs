//! The promises on DynamoDB: those of the other topics that apply, and what only it can break.
//!
//! These do not apply: what runs statements of the user's or marks rows (`fan_in`, some of `halving` and
//! `cancel`), what breaks a connection at COMMIT, since a transaction is one request (its answer is lost
//! here), what inserts the same row twice, since every table has a key (`reach`), `relay`, since there
//! is no outbox, and what is about the store alone.

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
    ambiguous_commit: a_commit_that_has_happened_is_refused_the_second_time,
        a_commit_of_held_items_is_refused_the_second_time;
    cancel: what_a_cancelled_job_emitted_is_removed, a_cancel_fences_what_it_ends,
        a_job_whose_table_is_gone_can_be_cancelled,
        a_worker_in_the_middle_of_a_handler_commits_nothing_after_a_cancel,
        a_cancel_in_the_middle_keeps_what_is_committed;
    conflicts: both_changes_survive_a_conflict, several_conflicts_in_a_row_are_survived,
        a_conflict_may_be_skipped, a_conflict_may_be_a_dead_letter,
        a_row_deleted_meanwhile_is_skipped,
        a_refresh_writes_every_record_once;
    crash: items_held_by_a_process_that_is_killed_are_finished_by_the_next,
        an_item_that_kills_its_process_becomes_a_dead_letter;
    definition_errors: a_table_dropped_before_the_load_fails_the_job,
        a_table_dropped_before_the_work_fails_the_job,
        a_table_dropped_between_two_commits_of_a_handler_fails_the_job,
        an_insert_into_a_table_that_is_not_there_fails_the_job;
    export: every_record_is_in_exactly_one_part, orphans_are_removed;
    halving: a_unique_violation_of_an_insert_costs_only_its_item,
        of_two_items_that_insert_one_row_one_is_set_aside, held_items_are_halved_too;
    item_errors: a_retryable_error_is_tried_again_until_it_succeeds,
        a_retryable_error_is_a_dead_letter_when_its_attempts_are_used_up,
        a_permanent_error_is_a_dead_letter_at_once,
        a_handler_that_panics_fails_on_its_item_alone,
        a_record_that_does_not_fit_the_type_is_a_dead_letter;
    items: each_item_is_worked_once_and_a_bad_one_is_a_letter_with_all_of_it,
        a_redrive_takes_the_items_of_the_first_job, a_dry_run_changes_nothing,
        an_update_makes_a_dead_letter_that_says_why, a_job_goes_on_after_its_lease_is_lost;
    late_fence: a_late_fence_brings_a_pruned_row_back_and_the_confirmation_refuses_it,
        a_late_fence_is_refused_by_a_row_at_a_higher_epoch;
    leases: a_shutdown_hands_chunks_back_and_another_worker_finishes_them,
        heartbeats_keep_a_lease_that_is_shorter_than_the_work,
        a_chunk_that_hangs_is_given_up_at_its_timeout,
        a_worker_whose_lease_was_taken_commits_nothing;
    pruning: a_completed_job_leaves_its_sums, what_ended_just_now_is_kept;
    reach: several_values_of_a_filter_are_loaded_side_by_side, several_filters_must_all_hold,
        empty_filters_mean_everything_and_unknown_values_nothing,
        ids_are_taken_once_and_unknown_ones_skipped,
        a_segment_stops_at_its_most_items;
    stalled_loader: a_page_in_the_middle_that_comes_late_is_refused, a_page_sent_twice_is_loaded_once;
    redrive: mended_rows_are_reprocessed, a_letter_that_fails_again_stays_one_letter,
        the_idempotency_key_is_the_same_over_retry_and_redrive,
        a_redrive_keeps_the_identity_of_the_original, two_redrives_at_once_take_each_letter_once,
        a_letter_is_free_again_when_its_redrive_is_cancelled;
    stopped_redrive: by_a_cancel, by_a_pause_and_a_cancel, by_a_worker_that_dies,
        by_a_bad_definition, by_attempts_that_are_used_up,
        a_failed_redrive_is_retried_from_its_ledger, what_a_cancelled_redrive_emitted_stays;
}

/// A fixture, and its tables.
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

/// Every third transaction is answered by an error, after it was carried out or before.
async fn complete_while_answers_are_lost(failures: u32, after: bool) {
    // Enough commits that some are lost however late the next loss is ordered.
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
                // The one that is lost, and one that is not.
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
async fn items_are_done_once_though_answers_are_lost() {
    complete_while_answers_are_lost(0, true).await;
}

#[tokio::test]
async fn items_are_done_once_though_commits_never_arrive() {
    complete_while_answers_are_lost(0, false).await;
}

#[tokio::test]
async fn held_items_are_done_once_though_answers_are_lost() {
    complete_while_answers_are_lost(1, true).await;
}

/// A writer that never stops, on the rows of a running job: no change of either is lost.
#[tokio::test]
async fn a_writer_at_the_same_rows_loses_nothing_and_overwrites_nothing() {
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

/// As AWS answers when another transaction is at one of the records, or capacity is short.
#[tokio::test]
async fn what_is_busy_is_no_conflict_and_no_failed_attempt() {
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

/// A transaction has a hundred actions, one of them the ledger's, whatever the job type says.
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

/// Where items bring rows of their own, as many go together as fit.
#[tokio::test]
async fn items_with_rows_of_their_own_are_committed_in_smaller_batches() {
    let (fixture, _) = fixture().await;
    fixture.visits(120).await;
    let engine = handling(&fixture, "chunk.items = 120", 0).await;
    let done = complete(&engine).await;
    assert_eq!((done.chunks.total, done.items.processed), (1, 120));
    fixture.each_once(120).await;
    fixture.logged_once(120).await;
}

/// A load says how far it is by the key that DynamoDB itself ended a page with.
#[tokio::test]
async fn segments_are_dynamodbs_own_and_keep_the_last_evaluated_key() {
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
async fn what_items_emit_is_reported() {
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
