//! Chunks: claimed, and ended or handed back by whoever holds them.

use std::time::Duration;

use windlass_core::{ChunkStatus, Counts};
use windlass_drivers::{Param, Transaction};

use super::{PostgresStore, advance, params, parts, sql};
use crate::fields::Fields;
use crate::transitions::{self, Ending, JobState};
use crate::values::{clean, millis};
use crate::{Capabilities, ClaimedChunk, Kept, Lease, Progress, Result, rows};

pub(super) async fn claim(
    store: &PostgresStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedChunk>> {
    let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
    let above = by.above.map(i64::from);
    let (jobs, firsts) = store.firsts.known();
    let params = params![connections, handlers, by.only, limit, &by.worker, above, jobs, firsts];
    let claimed = store.claim(sql!("claim_chunks"), params).await?;
    let claimed: Result<Vec<_>> = claimed.iter().map(rows::claimed_chunk).collect();
    claimed.inspect(|claimed| store.firsts.learn(claimed, by.above.is_none()))
}

/// Ends a chunk, and the job when it was the last.
pub(super) async fn end(
    store: &PostgresStore,
    lease: Lease,
    progress: &Progress,
    ending: Ending,
) -> Result<Kept> {
    // The job is locked first, by the counter that says whether this chunk is the last. When the
    // chunk turns out not to be ours, the rollback takes that back.
    let params = params![lease.chunk.job, 1_i64];
    let (tx, closed) = match ending {
        Ending::Completed { .. } => {
            store.begin_async_commit_with(sql!("close_chunk"), params).await?
        }
        // No ledger row says that a chunk was failed or cancelled.
        _ => store.begin_with(sql!("close_chunk"), params).await?,
    };
    if let Some(row) = closed.first()
        && end_chunk(&tx, lease, progress, &ending).await?
    {
        let head = JobState::read(row)?;
        if let Ending::Completed { part: Some(part), .. } = &ending {
            parts::put(&tx, lease, part).await?;
        }
        follow(&tx, head, progress, &ending).await?;
        tx.commit().await?;
        return Ok(Kept::Yes);
    }
    let kept = stands(&tx, lease, ending.status()).await?;
    tx.rollback().await?;
    Ok(kept)
}

/// Completes several chunks, or none of them.
pub(super) async fn complete_together(
    store: &PostgresStore,
    chunks: &[(Lease, Progress)],
) -> Result<bool> {
    let Some((first, _)) = chunks.first() else { return Ok(true) };
    let count = |of: fn(&Counts) -> i64| -> Vec<i64> {
        chunks.iter().map(|(_, progress)| of(&progress.counts)).collect()
    };
    let cursors: Vec<_> = chunks.iter().map(|(_, progress)| progress.cursor.to_text()).collect();
    let held: &[Param<'_>] = params![
        first.chunk.job,
        chunks.iter().map(|(lease, _)| lease.chunk.number).collect::<Vec<_>>(),
        chunks.iter().map(|(lease, _)| lease.epoch).collect::<Vec<_>>(),
        cursors.as_slice(),
        count(|counts| counts.read),
        count(|counts| counts.processed),
        count(|counts| counts.skipped),
        count(|counts| counts.dead),
        count(|counts| counts.conflicts),
        chunks.len() as i64,
    ];
    let sql = sql!("complete_chunks");
    let nonces: Vec<_> = chunks.iter().map(|(lease, _)| lease.nonce).collect();
    let last = |may_be: bool| [held, params![may_be, nonces.clone()]].concat();
    if !store.single_async_commit(sql, &last(false)).await?.is_empty() {
        return Ok(true);
    }
    let (tx, closed) = store.begin_async_commit_with(sql, &last(true)).await?;
    let Some(row) = closed.first() else {
        tx.rollback().await?;
        return Ok(false);
    };
    let mut head = JobState::read(row)?;
    advance::advance(&tx, &mut head).await?;
    tx.commit().await?;
    Ok(true)
}

async fn end_chunk(
    tx: &Transaction,
    lease: Lease,
    progress: &Progress,
    ending: &Ending,
) -> Result<bool> {
    let (chunk, counts) = (lease.chunk, progress.counts);
    let params = params![
        chunk.job,
        chunk.number,
        lease.epoch,
        ending.status().as_str(),
        progress.cursor.to_text(),
        counts.read,
        counts.processed,
        counts.skipped,
        counts.dead,
        counts.conflicts,
        ending.error(),
        lease.nonce,
    ];
    Ok(tx.execute(sql!("end_chunk"), params).await? > 0)
}

/// What comes of a chunk's end: letters are settled, the job fails, pauses or ends.
async fn follow(
    tx: &Transaction,
    mut head: JobState,
    progress: &Progress,
    ending: &Ending,
) -> Result<()> {
    let settled = ending.settled();
    if head.redrive && !settled.is_empty() {
        tx.execute(sql!("settle_letters"), params![head.id, settled]).await?;
    }
    if let Ending::Failed { error, fail_job: true, .. } = ending
        && let Some(made) = transitions::fail(&head, error.clone())
    {
        advance::apply(tx, &mut head, &made).await?;
    }
    if transitions::has_budget(&head, progress.counts.dead) {
        let dead = tx.query_one(sql!("dead_items"), params![head.id]).await?.int("dead")?;
        if let Some(made) = transitions::budget(&head, dead) {
            tx.execute(sql!("exceed_budget"), params![head.id]).await?;
            advance::apply(tx, &mut head, &made).await?;
        }
    }
    advance::advance(tx, &mut head).await
}

pub(super) async fn release(
    store: &PostgresStore,
    lease: Lease,
    progress: &Progress,
    error: Option<&str>,
    attempt: bool,
    wait: Duration,
) -> Result<Kept> {
    let tx = store.begin().await?;
    let (chunk, counts) = (lease.chunk, progress.counts);
    let params = params![
        chunk.job,
        chunk.number,
        lease.epoch,
        progress.cursor.to_text(),
        counts.read,
        counts.processed,
        counts.skipped,
        counts.dead,
        counts.conflicts,
        error.map(clean),
        i64::from(attempt),
        millis(wait),
        lease.nonce,
    ];
    let kept = match tx.execute(sql!("release_chunk"), params).await? {
        0 => stands(&tx, lease, ChunkStatus::Pending).await?,
        _ => Kept::Yes,
    };
    if wait.is_zero() {
        advance::signal(&tx).await?;
    }
    tx.commit().await?;
    Ok(kept)
}

/// Whether an earlier call at this epoch has brought the chunk where it is. One that a rescue has
/// brought there was lost.
async fn stands(tx: &Transaction, lease: Lease, status: ChunkStatus) -> Result<Kept> {
    let params = params![lease.chunk.job, lease.chunk.number];
    let Some(row) = tx.query_opt(sql!("chunk_standing"), params).await? else {
        return Ok(Kept::Lost);
    };
    let here: ChunkStatus = row.status("status")?;
    let same = row.int("epoch")? == lease.epoch && row.int("nonce")? == lease.nonce;
    Ok(transitions::repeated(same && here == status && !row.flag("lost")?))
}
