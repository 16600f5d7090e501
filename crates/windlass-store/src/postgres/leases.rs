//! Leases: whether they stand, how they are extended, and what happens when they run out.

use windlass_drivers::{Param, Row};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::values::{LEASE, millis};
use crate::{Lease, LeaseRenewal, Result, SegmentLease, Standing, transitions};

pub(super) async fn confirm(store: &PostgresStore, leases: &[Lease]) -> Result<Vec<Standing>> {
    if leases.is_empty() {
        return Ok(Vec::new());
    }
    let standings = store.single(sql!("confirm"), &keys(leases.iter().copied())).await?;
    in_order(&standings, leases.len())
}

pub(super) async fn heartbeat(
    store: &PostgresStore,
    chunks: &[LeaseRenewal],
    segments: &[SegmentLease],
) -> Result<Vec<Standing>> {
    if chunks.is_empty() && segments.is_empty() {
        return Ok(Vec::new());
    }
    let tx = store.begin_async_commit().await?;
    if !segments.is_empty() {
        let jobs: Vec<_> = segments.iter().map(|lease| lease.job).collect();
        let numbers: Vec<_> = segments.iter().map(|lease| i64::from(lease.segment)).collect();
        let epochs: Vec<_> = segments.iter().map(|lease| lease.epoch).collect();
        let nonces: Vec<_> = segments.iter().map(|lease| lease.nonce).collect();
        let params = params![jobs, numbers, epochs, millis(LEASE), nonces];
        tx.execute(sql!("heartbeat_segments"), params).await?;
    }
    let mut standings = Vec::new();
    if !chunks.is_empty() {
        let cursors: Vec<_> = chunks
            .iter()
            .map(|beat| beat.progress.as_ref().map(|progress| progress.cursor.to_text()))
            .collect();
        let count = |of: fn(&windlass_core::Counts) -> i64| -> Vec<Option<i64>> {
            chunks.iter().map(|beat| beat.progress.as_ref().map(|p| of(&p.counts))).collect()
        };
        let mut params = keys(chunks.iter().map(|beat| beat.lease)).to_vec();
        params.push(cursors.as_slice().into());
        params.push(count(|counts| counts.read).into());
        params.push(count(|counts| counts.processed).into());
        params.push(count(|counts| counts.skipped).into());
        params.push(count(|counts| counts.dead).into());
        params.push(count(|counts| counts.conflicts).into());
        standings = tx.query(sql!("heartbeat_chunks"), &params).await?;
    }
    tx.commit().await?;
    in_order(&standings, chunks.len())
}

pub(super) async fn rescue(store: &PostgresStore) -> Result<u64> {
    let tx = store.begin().await?;
    let segments = tx.execute(sql!("rescue_segments"), &[]).await?;
    let chunks = tx.execute(sql!("rescue_chunks"), &[]).await?;
    if segments + chunks > 0 {
        advance::signal(&tx).await?;
    }
    tx.commit().await?;
    Ok(segments + chunks)
}

fn keys<'a>(leases: impl Iterator<Item = Lease> + Clone) -> [Param<'a>; 4] {
    [
        leases.clone().map(|lease| lease.chunk.job).collect::<Vec<_>>().into(),
        leases.clone().map(|lease| lease.chunk.number).collect::<Vec<_>>().into(),
        leases.clone().map(|lease| lease.epoch).collect::<Vec<_>>().into(),
        leases.map(|lease| lease.nonce).collect::<Vec<_>>().into(),
    ]
}

/// Those that gave no row are lost.
fn in_order(standings: &[Row], count: usize) -> Result<Vec<Standing>> {
    let mut ordered = vec![Standing::Lost; count];
    for row in standings {
        let place = usize::try_from(row.int("place")?).unwrap_or_default();
        if let Some(standing) = ordered.get_mut(place.wrapping_sub(1)) {
            *standing = transitions::standing(row.status("status")?);
        }
    }
    Ok(ordered)
}
