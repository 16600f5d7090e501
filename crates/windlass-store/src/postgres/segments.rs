//! Segments: claimed, loaded page by page, handed back or failed.

use std::time::Duration;

use windlass_core::ChunkStatus;
use windlass_drivers::{Param, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::transitions::{self, Fit, JobState};
use crate::values::{LEASE, clean, millis, segment};
use crate::{Capabilities, ClaimedSegment, Kept, Page, Result, SegmentLease, StoreError, rows};

pub(super) async fn claim(
    store: &PostgresStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedSegment>> {
    let (connections, handlers) = (by.connections.as_slice(), by.handlers.as_slice());
    let params = params![connections, handlers, by.only, limit, &by.worker, millis(LEASE)];
    let claimed = store.claim(sql!("claim_segments"), params).await?;
    claimed.iter().map(rows::claimed_segment).collect()
}

pub(super) async fn load(store: &PostgresStore, page: Page) -> Result<Kept> {
    let tx = store.begin().await?;
    let kept = load_in(&tx, &page).await?;
    tx.commit().await?;
    Ok(kept)
}

async fn load_in(tx: &Transaction, page: &Page) -> Result<Kept> {
    let lease = page.lease;
    let Some(head) = advance::lock(tx, lease.job).await? else {
        return Ok(Kept::Lost);
    };
    let params = params![lease.job, lease.segment];
    let Some(row) = tx.query_opt(sql!("lock_segment"), params).await? else {
        return Ok(Kept::Lost);
    };
    match transitions::fit(&row, page)? {
        Fit::Next => {}
        Fit::Before => return Ok(Kept::Yes),
        Fit::Lost => return Ok(Kept::Lost),
    }
    let next = row.int("next")?;
    // Sent together, run one after the other: a small job waits for few round trips.
    let (segments, chunks, kept, grown, signalled) = tokio::join!(
        biased;
        insert_segments(tx, page, next),
        insert_chunks(tx, page, &head),
        keep_state(tx, page),
        grow(tx, page),
        advance::signal(tx)
    );
    segments.and(chunks).and(kept).and(signalled)?;
    advance::advance(tx, &mut grown?).await?;
    Ok(Kept::Yes)
}

async fn insert_segments(tx: &Transaction, page: &Page, next: i64) -> Result<()> {
    if page.segments.is_empty() {
        return Ok(());
    }
    let columns = page.segments.iter().map(|new| segment(&new.state, &new.range));
    let (states, ranges): (Vec<_>, Vec<_>) =
        columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let (states, ranges) = (states.as_slice(), ranges.as_slice());
    tx.execute(sql!("insert_segments"), params![page.lease.job, next, states, ranges]).await?;
    Ok(())
}

async fn insert_chunks(tx: &Transaction, page: &Page, head: &JobState) -> Result<()> {
    if page.chunks.is_empty() {
        return Ok(());
    }
    let key_sets = page.chunks.iter().map(|chunk| Ok(serde_json::to_string(&chunk.key_set)?));
    let key_sets = key_sets.collect::<Result<Vec<_>>>()?;
    let items: Vec<_> = page.chunks.iter().map(|chunk| chunk.items).collect();
    let (job, segment) = (page.lease.job, page.lease.segment);
    let params = params![job, segment, head.chunks_total, key_sets.as_slice(), items];
    tx.execute(sql!("insert_chunks"), params).await?;
    Ok(())
}

async fn keep_state(tx: &Transaction, page: &Page) -> Result<()> {
    let status = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    let SegmentLease { job, segment, epoch, nonce } = page.lease;
    let state = serde_json::to_string(&page.to)?;
    let params = params![job, segment, epoch, state, status.as_str(), millis(LEASE), nonce];
    tx.execute(sql!("keep_segment"), params).await?;
    Ok(())
}

async fn grow(tx: &Transaction, page: &Page) -> Result<JobState> {
    let chunks = page.chunks.len() as i64;
    let segments = page.segments.len() as i64 - i64::from(page.last);
    let items: i64 = page.chunks.iter().map(|chunk| chunk.items).sum();
    let params = params![page.lease.job, segments, chunks, chunks, items];
    JobState::read(&tx.query_one(sql!("grow_job"), params).await?)
}

pub(super) async fn release(
    store: &PostgresStore,
    lease: SegmentLease,
    error: Option<&str>,
    attempt: bool,
    wait: Duration,
) -> Result<Kept> {
    let tx = store.begin().await?;
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let attempt = i64::from(attempt);
    let params = params![job, segment, epoch, attempt, error.map(clean), millis(wait), nonce];
    let kept = match tx.execute(sql!("release_segment"), params).await? {
        0 => stands(&tx, lease, ChunkStatus::Pending).await?,
        _ => Kept::Yes,
    };
    if wait.is_zero() {
        advance::signal(&tx).await?;
    }
    tx.commit().await?;
    Ok(kept)
}

pub(super) async fn fail(store: &PostgresStore, lease: SegmentLease, error: &str) -> Result<Kept> {
    let tx = store.begin().await?;
    let kept = fail_in(&tx, lease, &clean(error)).await?;
    tx.commit().await?;
    Ok(kept)
}

async fn fail_in(tx: &Transaction, lease: SegmentLease, error: &str) -> Result<Kept> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    if advance::lock(tx, job).await?.is_none() {
        return Ok(Kept::Lost);
    }
    if tx.execute(sql!("fail_segment"), params![job, segment, epoch, error, nonce]).await? == 0 {
        return stands(tx, lease, ChunkStatus::Failed).await;
    }
    let params = params![job, -1_i64, 0_i64, 0_i64, 0_i64];
    let mut head = JobState::read(&tx.query_one(sql!("grow_job"), params).await?)?;
    if let Some(made) = transitions::fail(&head, format!("loading failed: {error}")) {
        advance::apply(tx, &mut head, &made).await?;
    }
    advance::advance(tx, &mut head).await?;
    Ok(Kept::Yes)
}

/// Ends the merge of a cancelled job, whose load is fenced, and the job when that was the last.
pub(super) async fn cancel(
    store: &PostgresStore,
    lease: SegmentLease,
    note: Option<String>,
) -> Result<Kept> {
    let tx = store.begin().await?;
    let kept = cancel_in(&tx, lease, note).await?;
    tx.commit().await?;
    Ok(kept)
}

async fn cancel_in(tx: &Transaction, lease: SegmentLease, note: Option<String>) -> Result<Kept> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    if advance::lock(tx, job).await?.is_none() {
        return Ok(Kept::Lost);
    }
    if tx.execute(sql!("end_segment"), params![job, segment, epoch, nonce]).await? == 0 {
        return stands(tx, lease, ChunkStatus::Cancelled).await;
    }
    let params = params![job, -1_i64, 0_i64, 0_i64, 0_i64];
    let mut head = JobState::read(&tx.query_one(sql!("grow_job"), params).await?)?;
    if note.is_some() {
        advance::apply(tx, &mut head, &transitions::note(note)).await?;
    }
    advance::advance(tx, &mut head).await?;
    Ok(Kept::Yes)
}

/// Whether an earlier call at this epoch has brought the segment where it is.
async fn stands(tx: &Transaction, lease: SegmentLease, status: ChunkStatus) -> Result<Kept> {
    let params: &[Param<'_>] = params![lease.job, lease.segment];
    let row = tx.query_opt(sql!("segment_standing"), params).await?;
    let row = row.ok_or_else(|| StoreError::Unreadable(format!("segment {}", lease.segment)))?;
    let here: ChunkStatus = row.status("status")?;
    Ok(transitions::repeated(
        here == status && row.int("epoch")? == lease.epoch && row.int("nonce")? == lease.nonce,
    ))
}
