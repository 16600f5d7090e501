//! Chunks: claimed, and ended or handed back by whoever holds them.

use std::time::Duration;

use windlass_core::ChunkStatus;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, parts, sql};
use crate::fields::Fields;
use crate::transitions::{self, Ending, JobState};
use crate::values::{clean, millis};
use crate::{Capabilities, ClaimedChunk, Kept, Lease, Progress, Result, rows};

pub(super) async fn claim(
    store: &SqliteStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedChunk>> {
    let by = by.clone();
    let claim = move |tx: &Transaction<'_>| {
        let mut claimed = Vec::new();
        for job in claimable(tx, &by, "chunks")? {
            let wanted = i64::from(limit) - claimed.len() as i64;
            if wanted == 0 {
                break;
            }
            let room = tx.query_one(sql!("room"), [&job], |row| row.opt_int("room"))?;
            let room = room.map_or(wanted, |room| wanted.min(room.max(0)));
            let picked = tx.query(sql!("pick_chunks"), params![job, room], |row| {
                Ok((row.int("number")?, row.flag("lost")?))
            })?;
            for (number, lost) in &picked {
                let params = params![job, number, by.worker, lost];
                let taken =
                    tx.query_one(sql!("take_chunk"), params, |row| rows::claimed_chunk(row))?;
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

/// The jobs of which these capabilities can claim something, in the order of claiming.
pub(super) fn claimable(
    tx: &Transaction<'_>,
    by: &Capabilities,
    what: &str,
) -> Result<Vec<String>> {
    let connections = serde_json::to_string(&by.connections)?;
    let handlers = serde_json::to_string(&by.handlers)?;
    let only = by.only.map(|id| id.to_string());
    let params = params![connections, handlers, only, what, by.above];
    tx.query(sql!("pick_jobs"), params, |row| row.text("id"))
}

/// Ends a chunk, and the job when it was the last.
pub(super) async fn end(
    store: &SqliteStore,
    lease: Lease,
    progress: &Progress,
    ending: Ending,
) -> Result<Kept> {
    let progress = progress.clone();
    store.write(move |tx| end_in(tx, lease, &progress, &ending)).await
}

/// Completes several chunks, or none of them.
pub(super) async fn complete_together(
    store: &SqliteStore,
    chunks: &[(Lease, Progress)],
) -> Result<bool> {
    let chunks = chunks.to_vec();
    let complete = move |tx: &Transaction<'_>| {
        for (lease, _) in &chunks {
            if stands(tx, *lease, ChunkStatus::Processing)? == Kept::Lost {
                return Ok(false);
            }
        }
        let completed = Ending::Completed { settled: Vec::new(), part: None };
        for (lease, progress) in &chunks {
            let _ = end_in(tx, *lease, progress, &completed)?;
        }
        Ok(true)
    };
    store.write(complete).await
}

fn end_in(
    tx: &Transaction<'_>,
    lease: Lease,
    progress: &Progress,
    ending: &Ending,
) -> Result<Kept> {
    if !end_chunk(tx, lease, progress, ending)? {
        return stands(tx, lease, ending.status());
    }
    let job = [lease.chunk.job.to_string()];
    let head = tx.query_one(sql!("close_chunk"), job, |row| JobState::read(row))?;
    if let Ending::Completed { part: Some(part), .. } = ending {
        parts::put(tx, lease, part)?;
    }
    follow(tx, head, progress, ending)?;
    Ok(Kept::Yes)
}

fn end_chunk(
    tx: &Transaction<'_>,
    lease: Lease,
    progress: &Progress,
    ending: &Ending,
) -> Result<bool> {
    let (chunk, counts) = (lease.chunk, progress.counts);
    let params = params![
        chunk.job.to_string(),
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
    Ok(tx.execute(sql!("end_chunk"), params)? > 0)
}

/// What comes of a chunk's end: letters are settled, the job fails, pauses or ends.
fn follow(
    tx: &Transaction<'_>,
    mut head: JobState,
    progress: &Progress,
    ending: &Ending,
) -> Result<()> {
    let id = head.id.to_string();
    let settled = ending.settled();
    if head.redrive && !settled.is_empty() {
        tx.execute(sql!("settle_letters"), params![id, serde_json::to_string(settled)?])?;
    }
    if let Ending::Failed { error, fail_job: true, .. } = ending
        && let Some(made) = transitions::fail(&head, error.clone())
    {
        advance::apply(tx, &mut head, &made)?;
    }
    if transitions::has_budget(&head, progress.counts.dead) {
        let dead = tx.query_one(sql!("dead_items"), [&id], |row| row.int("dead"))?;
        if let Some(made) = transitions::budget(&head, dead) {
            tx.execute(sql!("exceed_budget"), [&id])?;
            advance::apply(tx, &mut head, &made)?;
        }
    }
    advance::advance(tx, &mut head)
}

pub(super) async fn release(
    store: &SqliteStore,
    lease: Lease,
    progress: &Progress,
    error: Option<&str>,
    attempt: bool,
    wait: Duration,
) -> Result<Kept> {
    let (progress, error) = (progress.clone(), error.map(clean));
    let release = move |tx: &Transaction<'_>| {
        let (chunk, counts) = (lease.chunk, progress.counts);
        let params = params![
            chunk.job.to_string(),
            chunk.number,
            lease.epoch,
            progress.cursor.to_text(),
            counts.read,
            counts.processed,
            counts.skipped,
            counts.dead,
            counts.conflicts,
            error,
            attempt,
            millis(wait),
            lease.nonce,
        ];
        let released = tx.execute(sql!("release_chunk"), params)?;
        if wait.is_zero() {
            tx.signal()?;
        }
        if released > 0 { Ok(Kept::Yes) } else { stands(tx, lease, ChunkStatus::Pending) }
    };
    store.write(release).await
}

/// Whether an earlier call at this epoch has brought the chunk where it is. One that a rescue has
/// brought there was lost.
fn stands(tx: &Transaction<'_>, lease: Lease, status: ChunkStatus) -> Result<Kept> {
    let params = params![lease.chunk.job.to_string(), lease.chunk.number];
    let same = tx.query_opt(sql!("chunk_standing"), params, |row| {
        let here: ChunkStatus = row.status("status")?;
        let same = row.int("epoch")? == lease.epoch && row.int("nonce")? == lease.nonce;
        Ok(same && here == status && !row.flag("lost")?)
    })?;
    Ok(transitions::repeated(same.unwrap_or_default()))
}
