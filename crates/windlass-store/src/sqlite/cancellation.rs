//! Ends chunks and merges of cancelled jobs.

use async_trait::async_trait;
use windlass_core::{ChunkStatus, JobId};
use windlass_drivers::rusqlite::{Row, params};

use super::transaction::Transaction;
use super::{SqliteStore, advance, segments, sql};
use crate::fields::Fields;
use crate::values::{SEGMENT_LEASE, clean, millis};
use crate::{
    CancellationStore, Capabilities, LeasedChunk, Result, SegmentLease, rows, transitions,
};

#[async_trait]
impl CancellationStore for SqliteStore {
    async fn lease_cancelled(&self, by: &Capabilities, limit: u32) -> Result<Vec<LeasedChunk>> {
        let (worker, params) = (by.worker.clone(), lease_params(by, limit)?);
        let lease = move |tx: &Transaction<'_>| {
            let leasable = tx.query(sql!("leasable_cancelled"), params, |row| {
                Ok((row.text("job_id")?, row.int("number")?, row.flag("lost")?))
            })?;
            let lease = |(job, number, lost): (String, i64, bool)| {
                let params = params![job, number, worker, lost, millis(SEGMENT_LEASE)];
                tx.query_one(sql!("lease_cancelled"), params, |row| rows::leased_chunk(row))
            };
            leasable.into_iter().map(lease).collect()
        };
        self.write(lease).await
    }

    async fn lease_cancelled_merges(
        &self,
        by: &Capabilities,
        limit: u32,
    ) -> Result<Vec<SegmentLease>> {
        let (worker, params) = (by.worker.clone(), lease_params(by, limit)?);
        let lease = move |tx: &Transaction<'_>| {
            let leasable = tx.query(sql!("leasable_cancelled_merges"), params, |row| {
                Ok((row.text("job_id")?, row.int("number")?))
            })?;
            let lease = |(job, number): (String, i64)| {
                let params = params![job, number, worker, millis(SEGMENT_LEASE)];
                let leased =
                    tx.query_one(sql!("lease_segment"), params, |row| rows::leased_segment(row))?;
                Ok(leased.lease)
            };
            leasable.into_iter().map(lease).collect()
        };
        self.write(lease).await
    }

    async fn end_cancelled_merge(&self, lease: SegmentLease, note: Option<&str>) -> Result<()> {
        let note = note.map(clean);
        self.write(move |tx| end_merge(tx, lease, note)).await
    }

    async fn discardable(
        &self,
        connections: &[String],
        limit: u32,
    ) -> Result<Vec<(JobId, String)>> {
        let params = (serde_json::to_string(connections)?, limit);
        let read = |row: &Row<'_>| Ok((row.id("id")?, row.text("connection")?));
        self.query(sql!("discardable"), params, read).await
    }

    async fn mark_discarded(&self, job: JobId) -> Result<()> {
        self.execute(sql!("mark_discarded"), [job.to_string()]).await.map(drop)
    }
}

fn lease_params(by: &Capabilities, limit: u32) -> Result<(String, Option<String>, u32)> {
    let connections = serde_json::to_string(&by.connections)?;
    Ok((connections, by.only_job.map(|id| id.to_string()), limit))
}

fn end_merge(tx: &Transaction<'_>, lease: SegmentLease, note: Option<String>) -> Result<()> {
    let SegmentLease { job, segment, epoch, nonce } = lease;
    let id = job.to_string();
    if tx.execute(sql!(shared "end_segment"), params![id, segment, epoch, nonce])? == 0 {
        return segments::check_repeated(tx, lease, ChunkStatus::Cancelled);
    }
    let mut job = segments::count_ended(tx, &id)?;
    if note.is_some() {
        advance::apply(tx, &mut job, &transitions::cancellation_note(note))?;
    }
    advance::advance(tx, &mut job)
}
