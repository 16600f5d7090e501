//! Completes chunks in the store whose effects are all committed: those of one job in one transaction, and those of
//! several jobs at the same time.

use crate::execute::chunk_runner::{ChunkResult, LeaseOutcome};
use crate::execute::flush;
use crate::operate::job_log;
use futures::StreamExt as _;
use futures::future::join_all;
use std::collections::BTreeMap;
use windlass_core::JobId;
use windlass_store::{Lease, Progress};

/// How many jobs are completed at the same time. Each takes a connection to the store, and the last chunk of a job waits
/// for the disk: commits of several jobs share that wait.
const JOBS_AT_ONCE: usize = 8;

/// Completes simple chunks, after their commits are durable. Commits to one database become durable together.
pub(super) async fn complete_all(results: Vec<ChunkResult>) -> Vec<LeaseOutcome> {
    let connection = |result: &ChunkResult| result.chunk.job.definition().source.connection.clone();
    let flushed = join_all(groups(results, connection).into_iter().map(flush::flush_all)).await;
    let (durable, stopped): (Vec<_>, Vec<_>) = flushed.into_iter().unzip();
    let mut outcomes = Vec::new();
    for result in stopped.into_iter().flatten() {
        outcomes.push(result.end().await);
    }
    let mut jobs = groups(durable.into_iter().flatten().collect(), ChunkResult::job);
    outcomes.extend(complete_small_jobs(&mut jobs).await);
    let mut completed =
        futures::stream::iter(jobs.into_iter().map(complete)).buffer_unordered(JOBS_AT_ONCE);
    while let Some(of_job) = completed.next().await {
        outcomes.extend(of_job);
    }
    outcomes
}

/// Completes the jobs that have only one chunk, and takes them out of the list. What fails here is completed one by one.
async fn complete_small_jobs(jobs: &mut Vec<Vec<ChunkResult>>) -> Vec<LeaseOutcome> {
    let is_small =
        |job: &Vec<ChunkResult>| job.len() == 1 && job[0].chunk.lease().chunk.number == 0;
    let (small, others): (Vec<_>, Vec<_>) = std::mem::take(jobs).into_iter().partition(is_small);
    *jobs = others;
    let small: Vec<ChunkResult> = small.into_iter().flatten().collect();
    let Some(store) = small.first().map(|result| result.chunk.lease.store().clone()) else {
        return Vec::new();
    };
    let completed = store.complete_jobs(&ends(&small)).await;
    let completed = completed.unwrap_or_else(|_| vec![false; small.len()]);
    let mut ended = Vec::new();
    for (result, completed) in small.into_iter().zip(completed) {
        if completed {
            result.chunk.summary().log();
            ended.push(result.job());
        } else {
            jobs.push(vec![result]);
        }
    }
    let log = |job: &JobId| job_log::log_ended(store.as_ref(), *job);
    futures::stream::iter(ended.iter().map(log))
        .buffer_unordered(JOBS_AT_ONCE)
        .collect::<()>()
        .await;
    vec![LeaseOutcome::Completed; ended.len()]
}

/// The leases and the progress of chunks, which are not renewed any more: a heartbeat locks the same rows in another
/// order.
fn ends(results: &[ChunkResult]) -> Vec<(Lease, Progress)> {
    results.iter().for_each(|result| result.chunk.lease.stop_renewing());
    let end = |result: &ChunkResult| (result.chunk.lease(), result.chunk.lease_state().progress());
    results.iter().map(end).collect()
}

/// Completes chunks of one job in one transaction, or one by one if that fails.
async fn complete(results: Vec<ChunkResult>) -> Vec<LeaseOutcome> {
    let chunks = ends(&results);
    if let Some(first) = results.first()
        && let Ok(()) = first.chunk.lease.store().complete_together(&chunks).await
    {
        results.iter().for_each(|result| result.chunk.summary().log());
        let lease = &first.chunk.lease;
        job_log::log_end_by_chunk(lease.store().as_ref(), lease.heartbeat(), first.job()).await;
        return vec![LeaseOutcome::Completed; results.len()];
    }
    let mut outcomes = Vec::with_capacity(results.len());
    for result in results {
        outcomes.push(result.end().await);
    }
    outcomes
}

/// Groups results by what `key` returns.
fn groups<K: Ord>(
    results: Vec<ChunkResult>,
    key: impl Fn(&ChunkResult) -> K,
) -> Vec<Vec<ChunkResult>> {
    let mut groups: BTreeMap<K, Vec<ChunkResult>> = BTreeMap::new();
    for result in results {
        groups.entry(key(&result)).or_default().push(result);
    }
    groups.into_values().collect()
}
