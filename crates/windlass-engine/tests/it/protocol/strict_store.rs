//! The engine with a store in the dialect `strict`: serializable transactions, and no notifications.

use super::crash::deferred_items_of_a_killed_process_are_finished_by_the_next;
use super::ending_together::a_job_whose_last_chunks_end_together_completes_once;
use super::fan_in::totals_equal_the_sums_of_the_database;
use super::leases::{
    a_shutdown_hands_chunks_back_and_another_worker_finishes_them,
    a_worker_whose_lease_was_taken_commits_nothing,
};
use super::steering::a_retry_runs_only_the_chunks_that_failed;
use crate::protocol::common::*;

/// Each engine has its own connections to the store, like a process.
async fn workers_share_the_chunks_of_a_statement(fixture: EngineFixture) {
    const ROWS: i64 = 400;
    fixture.visits(ROWS).await;
    let jobs = job(ADD, "chunk.items = 10");
    let mut engines = Vec::new();
    for _ in 0..4 {
        engines.push(fixture.engine(&jobs).await);
    }
    let job = submit(&engines[0]).await;
    let start = |engine| Working::start(engine, "worker", 4);
    let workers: Vec<_> = engines.iter().map(start).collect();
    let done = ended(&engines[0], job).await;
    proven(&engines[0], &done).await;
    let mut completed = 0;
    for worker in workers {
        completed += worker.stop().await.completed;
    }
    assert_eq!((completed, done.chunks.completed), (ROWS as u64 / 10, ROWS / 10));
    fixture.each_once(ROWS).await;
}

on_fixture!(
    strict,
    strict: workers_share_the_chunks_of_a_statement,
    a_shutdown_hands_chunks_back_and_another_worker_finishes_them,
    a_worker_whose_lease_was_taken_commits_nothing,
    deferred_items_of_a_killed_process_are_finished_by_the_next,
    a_retry_runs_only_the_chunks_that_failed,
    a_job_whose_last_chunks_end_together_completes_once,
    totals_equal_the_sums_of_the_database
);
