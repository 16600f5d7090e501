//! Ends chunks and merges of cancelled jobs.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId};
use windlass_drivers::{Param, Row};

use super::{PostgresStore, Transaction, advance, params, segments, sql};
use crate::fields::Fields;
use crate::values::{SEGMENT_LEASE, clean, millis};
use crate::{
    CancellationStore, Capabilities, LeasedChunk, Result, SegmentLease, StoreError, rows,
    transitions,
};

#[async_trait]
impl CancellationStore for PostgresStore {
    async fn lease_cancelled(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>> {
        let leased = self.lease(sql!("lease_cancelled"), &lease_params(by, limit)).await?;
        leased.iter().map(rows::leased_chunk).collect()
    }

    async fn lease_cancelled_merges(
        &self,
        by: &Capabilities,
        limit: u32,
    ) -> Result<Vec<SegmentLease>> {
        let leased = self.lease(sql!("lease_cancelled_merges"), &lease_params(by, limit)).await?;
        leased.iter().map(|row| Ok(rows::leased_segment(row)?.lease)).collect()
    }

    async fn end_cancelled_merge(&self, lease: SegmentLease, note: Option<&str>) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = end_merge(&tx, lease, note.map(clean)).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn discardable(
        &self,
        connections: &[String],
        limit: u32,
    ) -> Result<Vec<(JobId, String)>> {
        let read = |row: &Row| Ok((row.id("id")?, row.text("connection")?));
        self.read(sql!("discardable"), params![connections, limit], read).await
    }

    async fn mark_discarded(&self, job: JobId) -> Result<()> {
        self.single(sql!("mark_discarded"), params![job]).await.map(drop)
    }
}

fn lease_params(by: &Capabilities, limit: u32) -> [Param<'_>; 5] {
    let connections = by.connections.as_slice().into();
    let lease = millis(SEGMENT_LEASE).into();
    [connections, by.only_job.into(), limit.into(), (&by.worker).into(), lease]
}

async fn end_merge(tx: &Transaction, lease: SegmentLease, note: Option<String>) -> Result<()> {
    let SegmentLease { job: id, segment, epoch, nonce } = lease;
    if advance::lock_job(tx, id).await?.is_none() {
        return Err(StoreError::LeaseLost);
    }
    if tx.execute(sql!(shared "end_segment"), params![id, segment, epoch, nonce]).await? == 0 {
        return segments::check_repeated(tx, lease, ChunkStatus::Cancelled).await;
    }
    let mut job = segments::count_ended(tx, id).await?;
    if note.is_some() {
        advance::apply(tx, &mut job, &transitions::cancellation_note(note)).await?;
    }
    advance::advance(tx, &mut job).await
}
