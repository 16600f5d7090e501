//! Completes many jobs of one chunk in one transaction.

use std::collections::HashSet;

use windlass_core::JobId;
use windlass_drivers::Param;

use super::{PostgresStore, Transaction, params, sql};
use crate::fields::Fields;
use crate::{Lease, Progress, Result, Topics};

/// Completes the jobs of these chunks where that is all there is to do. Returns for each chunk whether it did.
pub(super) async fn complete(
    store: &PostgresStore,
    chunks: &[(Lease, Progress)],
) -> Result<Vec<bool>> {
    let jobs: Vec<JobId> = chunks.iter().map(|(lease, _)| lease.chunk.job).collect();
    let number = |of: fn(&(Lease, Progress)) -> i64| chunks.iter().map(of).collect::<Vec<i64>>();
    let cursors: Vec<_> = chunks.iter().map(|(_, progress)| progress.cursor.to_text()).collect();
    let marked: Vec<_> = chunks.iter().map(|(_, progress)| progress.marked).collect();
    let params = params![
        jobs.clone(),
        number(|(lease, _)| lease.epoch),
        number(|(lease, _)| lease.nonce),
        cursors.as_slice(),
        number(|(_, progress)| progress.counts.read),
        number(|(_, progress)| progress.counts.processed),
        number(|(_, progress)| progress.counts.skipped),
        number(|(_, progress)| progress.counts.conflicts),
        marked,
    ];
    let locked = params![jobs.clone()];
    let run = || async {
        let (tx, _) = store.begin_with(sql!("lock_jobs"), locked).await?;
        let completed = complete_locked(&tx, params).await;
        tx.finish(completed).await
    };
    let completed = store.repeat(run).await?;
    Ok(jobs.iter().map(|job| completed.contains(job)).collect())
}

async fn complete_locked(tx: &Transaction, params: &[Param<'_>]) -> Result<HashSet<JobId>> {
    let rows = tx.query(sql!("complete_jobs"), params).await?;
    let completed = rows.iter().map(|row| row.id("id")).collect::<Result<HashSet<JobId>>>()?;
    if !completed.is_empty() {
        tx.signal_topics(Topics::REST);
    }
    Ok(completed)
}
