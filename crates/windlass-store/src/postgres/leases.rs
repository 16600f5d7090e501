//! Confirms, renews and expires leases.

use async_trait::async_trait;
use windlass_core::Counts;
use windlass_drivers::{Param, Row, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::values::{SEGMENT_LEASE, millis};
use crate::{Lease, LeaseRenewal, LeaseStatus, LeaseStore, Result, SegmentLease, transitions};

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn confirm(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.single(sql!("confirm"), &keys(leases.iter().copied())).await?;
        statuses(&rows, leases.len())
    }

    async fn heartbeat(
        &self,
        chunks: &[LeaseRenewal],
        segments: &[SegmentLease],
    ) -> Result<Vec<LeaseStatus>> {
        if chunks.is_empty() && segments.is_empty() {
            return Ok(Vec::new());
        }
        let tx = self.begin_async_commit().await?;
        if !segments.is_empty() {
            renew_segments(&tx, segments).await?;
        }
        let rows = if chunks.is_empty() { Vec::new() } else { renew_chunks(&tx, chunks).await? };
        tx.commit().await?;
        statuses(&rows, chunks.len())
    }

    async fn rescue(&self) -> Result<u64> {
        let tx = self.begin().await?;
        let segments = tx.execute(sql!("rescue_segments"), &[]).await?;
        let chunks = tx.execute(sql!("rescue_chunks"), &[]).await?;
        if segments + chunks > 0 {
            advance::signal(&tx).await?;
        }
        tx.commit().await?;
        Ok(segments + chunks)
    }
}

async fn renew_segments(tx: &Transaction, segments: &[SegmentLease]) -> Result<()> {
    let jobs: Vec<_> = segments.iter().map(|lease| lease.job).collect();
    let numbers: Vec<_> = segments.iter().map(|lease| i64::from(lease.segment)).collect();
    let epochs: Vec<_> = segments.iter().map(|lease| lease.epoch).collect();
    let nonces: Vec<_> = segments.iter().map(|lease| lease.nonce).collect();
    let params = params![jobs, numbers, epochs, millis(SEGMENT_LEASE), nonces];
    tx.execute(sql!("heartbeat_segments"), params).await?;
    Ok(())
}

async fn renew_chunks(tx: &Transaction, renewals: &[LeaseRenewal]) -> Result<Vec<Row>> {
    let progress = || renewals.iter().map(|renewal| renewal.progress.as_ref());
    let cursors: Vec<_> = progress().map(|known| known.map(|p| p.cursor.to_text())).collect();
    let count = |of: fn(&Counts) -> i64| -> Param<'_> {
        progress().map(|known| known.map(|p| of(&p.counts))).collect::<Vec<_>>().into()
    };
    let mut params = keys(renewals.iter().map(|renewal| renewal.lease)).to_vec();
    params.extend([
        cursors.as_slice().into(),
        count(|counts| counts.read),
        count(|counts| counts.processed),
        count(|counts| counts.skipped),
        count(|counts| counts.dead),
        count(|counts| counts.conflicts),
    ]);
    Ok(tx.query(sql!("heartbeat_chunks"), &params).await?)
}

fn keys<'a>(leases: impl Iterator<Item = Lease> + Clone) -> [Param<'a>; 4] {
    [
        leases.clone().map(|lease| lease.chunk.job).collect::<Vec<_>>().into(),
        leases.clone().map(|lease| lease.chunk.number).collect::<Vec<_>>().into(),
        leases.clone().map(|lease| lease.epoch).collect::<Vec<_>>().into(),
        leases.map(|lease| lease.nonce).collect::<Vec<_>>().into(),
    ]
}

/// The status of each lease in the order given. Leases without a row are lost.
fn statuses(rows: &[Row], count: usize) -> Result<Vec<LeaseStatus>> {
    let mut statuses = vec![LeaseStatus::Lost; count];
    for row in rows {
        let place = usize::try_from(row.int("place")?).unwrap_or_default();
        if let Some(status) = statuses.get_mut(place.wrapping_sub(1)) {
            *status = transitions::lease_status(row.status("status")?);
        }
    }
    Ok(statuses)
}
