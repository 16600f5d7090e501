//! Leases: whether they stand, how they are extended, and what happens when they run out.

use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::values::{LEASE, millis};
use crate::{Lease, LeaseRenewal, Result, SegmentLease, Standing, transitions};

pub(super) async fn confirm(store: &SqliteStore, leases: &[Lease]) -> Result<Vec<Standing>> {
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let leases = leases.to_vec();
    store.read(move |tx| leases.iter().map(|lease| standing(tx, *lease)).collect()).await
}

pub(super) async fn heartbeat(
    store: &SqliteStore,
    chunks: &[LeaseRenewal],
    segments: &[SegmentLease],
) -> Result<Vec<Standing>> {
    if chunks.is_empty() && segments.is_empty() {
        return Ok(Vec::new());
    }
    let (chunks, segments) = (chunks.to_vec(), segments.to_vec());
    let beat = move |tx: &Transaction<'_>| {
        for SegmentLease { job, segment, epoch, nonce } in segments {
            let params = params![job.to_string(), segment, epoch, millis(LEASE), nonce];
            tx.execute(sql!("heartbeat_segment"), params)?;
        }
        chunks.iter().map(|beat| beat_chunk(tx, beat)).collect()
    };
    store.write(beat).await
}

fn beat_chunk(tx: &Transaction<'_>, beat: &LeaseRenewal) -> Result<Standing> {
    let (chunk, progress) = (beat.lease.chunk, beat.progress.as_ref());
    let counts = progress.map(|progress| progress.counts);
    let params = params![
        chunk.job.to_string(),
        chunk.number,
        beat.lease.epoch,
        progress.map(|progress| progress.cursor.to_text()),
        counts.map(|counts| counts.read),
        counts.map(|counts| counts.processed),
        counts.map(|counts| counts.skipped),
        counts.map(|counts| counts.dead),
        counts.map(|counts| counts.conflicts),
        beat.lease.nonce,
    ];
    tx.execute(sql!("heartbeat_chunk"), params)?;
    standing(tx, beat.lease)
}

fn standing(tx: &Transaction<'_>, lease: Lease) -> Result<Standing> {
    let Lease { chunk, epoch, nonce } = lease;
    let params = params![chunk.job.to_string(), chunk.number, epoch, nonce];
    let held = tx.query_opt(sql!("confirm"), params, |row| row.status("status"))?;
    Ok(held.map_or(Standing::Lost, transitions::standing))
}

pub(super) async fn rescue(store: &SqliteStore) -> Result<u64> {
    let rescue = |tx: &Transaction<'_>| {
        let rescued =
            tx.execute(sql!("rescue_segments"), [])? + tx.execute(sql!("rescue_chunks"), [])?;
        if rescued > 0 {
            tx.signal()?;
        }
        Ok(rescued)
    };
    store.write(rescue).await
}
