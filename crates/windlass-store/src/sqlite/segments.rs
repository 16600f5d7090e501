//! Segments: claimed, loaded page by page, handed back or failed.

use std::time::Duration;

use windlass_core::ChunkStatus;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, chunks, sql};
use crate::fields::Fields;
use crate::transitions::{self, Fit, JobState};
use crate::values::{LEASE, clean, millis, segment};
use crate::{Capabilities, ClaimedSegment, Kept, Page, Result, SegmentLease, rows};

pub(super) async fn claim(
    store: &SqliteStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedSegment>> {
    let by = by.clone();
    let claim = move |tx: &Transaction<'_>| {
        let mut claimed = Vec::new();
        for job in chunks::claimable(tx, &by, "segments")? {
            let room = i64::from(limit) - claimed.len() as i64;
            if room == 0 {
                break;
            }
            let picked =
                tx.query(sql!("pick_segments"), params![job, room], |row| row.int("number"))?;
            for number in &picked {
                let params = params![job, number, by.worker, millis(LEASE)];
                let taken =
                    tx.query_one(sql!("take_segment"), params, |row| rows::claimed_segment(row))?;
                claimed.push(taken);
            }
            if !picked.is_empty() {
                tx.execute(sql!("begin_job"), [&job])?;
            }
        }
        Ok(claimed)
    };
    store.write(claim).await
}

pub(super) async fn load(store: &SqliteStore, page: Page) -> Result<Kept> {
    store.write(move |tx| load_in(tx, &page)).await
}

fn load_in(tx: &Transaction<'_>, page: &Page) -> Result<Kept> {
    let job = page.lease.job.to_string();
    let Some(head) = advance::lock(tx, page.lease.job)? else {
        return Ok(Kept::Lost);
    };
    let found = tx.query_opt(sql!("lock_segment"), params![job, page.lease.segment], |row| {
        Ok((transitions::fit(row, page)?, row.int("next")?))
    })?;
    let next = match found {
        Some((Fit::Next, next)) => next,
        Some((Fit::Before, _)) => return Ok(Kept::Yes),
        Some((Fit::Lost, _)) | None => return Ok(Kept::Lost),
    };
    for (number, new) in (next..).zip(&page.segments) {
        let (state, range) = segment(&new.state, &new.range)?;
        tx.execute(sql!("insert_segment"), params![job, number, state, range])?;
    }
    for (number, chunk) in (head.chunks_total..).zip(&page.chunks) {
        let key_set = serde_json::to_string(&chunk.key_set)?;
        let params = params![job, page.lease.segment, number, key_set, chunk.items];
        tx.execute(sql!("insert_chunk"), params)?;
    }
    keep_state(tx, page)?;
    let mut head = grow(tx, page)?;
    if !page.segments.is_empty() || !page.chunks.is_empty() {
        tx.signal()?;
    }
    advance::advance(tx, &mut head)?;
    Ok(Kept::Yes)
}

fn keep_state(tx: &Transaction<'_>, page: &Page) -> Result<()> {
    let status = if page.last { ChunkStatus::Completed } else { ChunkStatus::Processing };
    let SegmentLease { job, segment, epoch, nonce } = page.lease;
    let state = serde_json::to_string(&page.to)?;
    let params =
        params![job.to_string(), segment, epoch, state, status.as_str(), millis(LEASE), nonce];
    tx.execute(sql!("keep_segment"), params)?;
    Ok(())
}

fn grow(tx: &Transaction<'_>, page: &Page) -> Result<JobState> {
    let chunks = page.chunks.len() as i64;
    let segments = page.segments.len() as i64 - i64::from(page.last);
    let items: i64 = page.chunks.iter().map(|chunk| chunk.items).sum();
    let params = params![page.lease.job.to_string(), segments, chunks, chunks, items];
    tx.query_one(sql!("grow_job"), params, |row| JobState::read(row))
}

pub(super) async fn release(
    store: &SqliteStore,
    lease: SegmentLease,
    error: Option<&str>,
    attempt: bool,
    wait: Duration,
) -> Result<Kept> {
    let error = error.map(clean);
    let release = move |tx: &Transaction<'_>| {
        let SegmentLease { job, segment, epoch, nonce } = lease;
        let attempt = i64::from(attempt);
        let params = params![job.to_string(), segment, epoch, attempt, error, millis(wait), nonce];
        let released = tx.execute(sql!("release_segment"), params)?;
        if wait.is_zero() {
            tx.signal()?;
        }
        if released > 0 { Ok(Kept::Yes) } else { stands(tx, lease, ChunkStatus::Pending) }
    };
    store.write(release).await
}

pub(super) async fn fail(store: &SqliteStore, lease: SegmentLease, error: &str) -> Result<Kept> {
    let error = clean(error);
    store.write(move |tx| fail_in(tx, lease, &error)).await
}

fn fail_in(tx: &Transaction<'_>, lease: SegmentLease, error: &str) -> Result<Kept> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let id = job.to_string();
    if tx.execute(sql!("fail_segment"), params![id, segment, epoch, error, nonce])? == 0 {
        return stands(tx, lease, ChunkStatus::Failed);
    }
    let mut head =
        tx.query_one(sql!("grow_job"), params![id, -1, 0, 0, 0], |row| JobState::read(row))?;
    if let Some(made) = transitions::fail(&head, format!("loading failed: {error}")) {
        advance::apply(tx, &mut head, &made)?;
    }
    advance::advance(tx, &mut head)?;
    Ok(Kept::Yes)
}

/// Ends the merge of a cancelled job, whose load is fenced, and the job when that was the last.
pub(super) async fn cancel(
    store: &SqliteStore,
    lease: SegmentLease,
    note: Option<String>,
) -> Result<Kept> {
    store.write(move |tx| cancel_in(tx, lease, note)).await
}

fn cancel_in(tx: &Transaction<'_>, lease: SegmentLease, note: Option<String>) -> Result<Kept> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let id = job.to_string();
    if tx.execute(sql!("end_segment"), params![id, segment, epoch, nonce])? == 0 {
        return stands(tx, lease, ChunkStatus::Cancelled);
    }
    let mut head =
        tx.query_one(sql!("grow_job"), params![id, -1, 0, 0, 0], |row| JobState::read(row))?;
    if note.is_some() {
        advance::apply(tx, &mut head, &transitions::note(note))?;
    }
    advance::advance(tx, &mut head)?;
    Ok(Kept::Yes)
}

/// Whether an earlier call at this epoch has brought the segment where it is.
fn stands(tx: &Transaction<'_>, lease: SegmentLease, status: ChunkStatus) -> Result<Kept> {
    let params = params![lease.job.to_string(), lease.segment];
    let same = tx.query_opt(sql!("segment_standing"), params, |row| {
        let here: ChunkStatus = row.status("status")?;
        Ok(here == status && row.int("epoch")? == lease.epoch && row.int("nonce")? == lease.nonce)
    })?;
    Ok(transitions::repeated(same.unwrap_or_default()))
}
