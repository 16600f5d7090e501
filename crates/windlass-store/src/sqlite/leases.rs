//! Confirms, renews and expires leases.

use async_trait::async_trait;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::control::WORKER_SILENT_AFTER_MS;
use crate::fields::Fields;
use crate::values::{QUEUED_LEASE, SEGMENT_LEASE, millis};
use crate::{
    Capabilities, Lease, LeaseRenewal, LeaseStatus, LeaseStore, OrphanedLeases, Result,
    SegmentLease, rows, transitions,
};

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn confirm(&self, leases: &[Lease]) -> Result<Vec<LeaseStatus>> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let leases = leases.to_vec();
        self.read(move |tx| leases.iter().map(|lease| lease_status(tx, *lease)).collect()).await
    }

    async fn heartbeat(
        &self,
        chunks: &[LeaseRenewal],
        segments: &[SegmentLease],
    ) -> Result<Vec<LeaseStatus>> {
        if chunks.is_empty() && segments.is_empty() {
            return Ok(Vec::new());
        }
        let (chunks, segments) = (chunks.to_vec(), segments.to_vec());
        let renew = move |tx: &Transaction<'_>| {
            for SegmentLease { job, segment, epoch, nonce } in segments {
                let params = params![job.to_string(), segment, epoch, millis(SEGMENT_LEASE), nonce];
                tx.execute(sql!("heartbeat_segment"), params)?;
            }
            chunks.iter().map(|renewal| renew_chunk(tx, renewal)).collect()
        };
        self.write(renew).await
    }

    async fn orphaned_leases(&self, by: &Capabilities) -> Result<Vec<OrphanedLeases>> {
        let only_job = by.only_job.map(|id| id.to_string());
        let params = (by.worker.clone(), only_job, WORKER_SILENT_AFTER_MS);
        self.query(sql!("orphaned_leases"), params, |row| rows::orphaned_leases(row)).await
    }

    async fn expire_leases(&self, worker: &str) -> Result<u64> {
        let worker = worker.to_owned();
        let expire = move |tx: &Transaction<'_>| {
            let segments = tx.execute(sql!("expire_segments"), [&worker])?;
            tx.execute(sql!("expire_read_snapshots"), [&worker])?;
            Ok(segments + tx.execute(sql!("expire_chunks"), [&worker])?)
        };
        self.write(expire).await
    }

    async fn rescue(&self) -> Result<u64> {
        let rescue = |tx: &Transaction<'_>| {
            let rescued =
                tx.execute(sql!("rescue_segments"), [])? + tx.execute(sql!("rescue_chunks"), [])?;
            if rescued > 0 {
                tx.signal()?;
            }
            Ok(rescued)
        };
        self.write(rescue).await
    }
}

fn renew_chunk(tx: &Transaction<'_>, renewal: &LeaseRenewal) -> Result<LeaseStatus> {
    let (lease, progress) = (renewal.lease, renewal.progress.as_ref());
    let counts = progress.map(|progress| progress.counts);
    let params = params![
        lease.chunk.job.to_string(),
        lease.chunk.number,
        lease.epoch,
        progress.map(|progress| progress.cursor.to_text()),
        counts.map(|counts| counts.read),
        counts.map(|counts| counts.processed),
        counts.map(|counts| counts.skipped),
        counts.map(|counts| counts.dead),
        counts.map(|counts| counts.conflicts),
        lease.nonce,
        (!renewal.in_slot).then(|| millis(QUEUED_LEASE)),
        progress.and_then(|progress| progress.marked),
    ];
    tx.execute(sql!("heartbeat_chunk"), params)?;
    lease_status(tx, lease)
}

fn lease_status(tx: &Transaction<'_>, lease: Lease) -> Result<LeaseStatus> {
    let Lease { chunk, epoch, nonce } = lease;
    let params = params![chunk.job.to_string(), chunk.number, epoch, nonce];
    let job_status = tx.query_opt(sql!("confirm"), params, |row| row.status("status"))?;
    Ok(job_status.map_or(LeaseStatus::Lost, transitions::lease_status))
}
