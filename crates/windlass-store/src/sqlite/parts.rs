//! Stores the output of chunks and merges.

use async_trait::async_trait;
use windlass_core::{ChunkId, ChunkStatus, JobId};
use windlass_drivers::rusqlite::{Row, params};

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::{
    Lease, MERGED, NewPart, PartRow, PartStore, REPORT, Result, SegmentLease, rows, transitions,
};

#[async_trait]
impl PartStore for SqliteStore {
    async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>> {
        let params = (job.to_string(), after, limit);
        self.query(sql!(shared "list_parts"), params, |row| rows::part(row)).await
    }

    async fn merged_part(&self, job: JobId) -> Result<Option<PartRow>> {
        let params = (job.to_string(), MERGED);
        self.query_opt(sql!("merged_part"), params, |row| rows::part(row)).await
    }

    async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<()> {
        let merged = merged.clone();
        self.write(move |tx| put_of_merge(tx, lease, MERGED, &merged)).await
    }

    async fn put_report(&self, lease: SegmentLease, report: &NewPart) -> Result<()> {
        let report = report.clone();
        self.write(move |tx| put_of_merge(tx, lease, REPORT, &report)).await
    }

    async fn remove_parts(&self, job: JobId) -> Result<()> {
        self.execute(sql!(shared "remove_parts"), [job.to_string()]).await.map(drop)
    }
}

/// Stores a part, in the transaction that completes its chunk.
pub(super) fn put(tx: &Transaction<'_>, lease: Lease, part: &NewPart) -> Result<()> {
    let NewPart { name, rows, bytes, sha256, content_hash, content } = part;
    let Lease { chunk: ChunkId { job, number }, epoch, nonce } = lease;
    let job = job.to_string();
    let params =
        params![job, number, epoch, name, rows, bytes, sha256, content_hash, content, nonce];
    tx.execute(sql!(shared "put_part"), params).map(drop)
}

fn put_of_merge(
    tx: &Transaction<'_>,
    lease: SegmentLease,
    number: i64,
    part: &NewPart,
) -> Result<()> {
    let params = params![lease.job.to_string(), lease.segment];
    let read = |row: &Row<'_>| transitions::is_segment_at(row, lease, ChunkStatus::Processing);
    let is_held = tx.query_opt(sql!("lock_segment"), params, read)?;
    transitions::repeated(is_held.unwrap_or_default())?;
    let SegmentLease { job, epoch, nonce, .. } = lease;
    put(tx, Lease { chunk: ChunkId { job, number }, epoch, nonce }, part)
}
