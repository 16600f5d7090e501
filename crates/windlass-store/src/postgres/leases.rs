//! Confirms, renews and expires leases.

use async_trait::async_trait;
use windlass_core::Counts;
use windlass_drivers::{Param, Row};

use super::{PostgresStore, Transaction, params, sql};
use crate::control::WORKER_SILENT_AFTER_MS;
use crate::fields::Fields;
use crate::values::{QUEUED_LEASE, SEGMENT_LEASE, millis};
use crate::{
    Capabilities, Lease, LeaseRenewal, LeaseStatus, LeaseStore, OrphanedLeases, Result,
    SegmentLease, Topics, rows, transitions,
};

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn confirm(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.by_key(sql!("confirm"), &keys(leases.iter().copied())).await?;
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
        let run = || async {
            let tx = self.begin_async_commit().await?;
            let renewed = renew(&tx, chunks, segments).await;
            tx.finish(renewed).await
        };
        statuses(&self.repeat(run).await?, chunks.len())
    }

    async fn orphaned_leases(&self, by: &Capabilities) -> Result<Vec<OrphanedLeases>> {
        let params = params![&by.worker, by.only_job, WORKER_SILENT_AFTER_MS];
        self.read(sql!("orphaned_leases"), params, rows::orphaned_leases).await
    }

    async fn expire_leases(&self, worker: &str) -> Result<u64> {
        let (segments, chunks) = (sql!("expire_segments"), sql!("expire_chunks"));
        let of_worker: &[Param<'_>] = params![worker];
        let statements = [segments, chunks, sql!("expire_read_snapshots")];
        let expired = self.execute_all(&statements.map(|sql| (sql, of_worker))).await?;
        Ok(expired[0] + expired[1])
    }

    async fn rescue(&self) -> Result<u64> {
        let (segments, chunks) = (sql!("rescue_segments"), sql!("rescue_chunks"));
        let rescued = self.execute_all(&[(segments, &[]), (chunks, &[])]).await?.iter().sum();
        if rescued > 0 {
            self.signaller.signal(Topics::ALL).await;
        }
        Ok(rescued)
    }
}

/// Renews leases, and returns the rows of the renewed chunks.
async fn renew(
    tx: &Transaction,
    chunks: &[LeaseRenewal],
    segments: &[SegmentLease],
) -> Result<Vec<Row>> {
    if !segments.is_empty() {
        renew_segments(tx, segments).await?;
    }
    if chunks.is_empty() { Ok(Vec::new()) } else { renew_chunks(tx, chunks).await }
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
    let longest = |renewal: &LeaseRenewal| (!renewal.in_slot).then(|| millis(QUEUED_LEASE));
    let longest: Vec<Option<i64>> = renewals.iter().map(longest).collect();
    let mut params = keys(renewals.iter().map(|renewal| renewal.lease)).to_vec();
    params.extend([
        cursors.as_slice().into(),
        count(|counts| counts.read),
        count(|counts| counts.processed),
        count(|counts| counts.skipped),
        count(|counts| counts.dead),
        count(|counts| counts.conflicts),
        longest.into(),
        progress().map(|known| known.and_then(|p| p.marked)).collect::<Vec<_>>().into(),
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
