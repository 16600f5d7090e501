//! Stores the output of chunks and merges.

use async_trait::async_trait;
use windlass_core::{ChunkId, ChunkStatus, JobId};
use windlass_drivers::Param;

use super::{PostgresStore, Transaction, advance, params, sql};
use crate::{
    Lease, MERGED, NewPart, PartRow, PartStore, REPORT, Result, SegmentLease, StoreError, rows,
    transitions,
};

#[async_trait]
impl PartStore for PostgresStore {
    async fn parts(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<PartRow>> {
        self.read(sql!(shared "list_parts"), params![job, after, limit], rows::part).await
    }

    async fn merged_part(&self, job: JobId) -> Result<Option<PartRow>> {
        self.read_first(sql!("merged_part"), params![job, MERGED], rows::part).await
    }

    async fn put_merged(&self, lease: SegmentLease, merged: &NewPart) -> Result<()> {
        self.put_of_merge(lease, MERGED, merged).await
    }

    async fn put_report(&self, lease: SegmentLease, report: &NewPart) -> Result<()> {
        self.put_of_merge(lease, REPORT, report).await
    }

    async fn remove_parts(&self, job: JobId) -> Result<()> {
        self.single(sql!(shared "remove_parts"), params![job]).await.map(drop)
    }
}

impl PostgresStore {
    async fn put_of_merge(&self, lease: SegmentLease, number: i64, part: &NewPart) -> Result<()> {
        let run = || async {
            let tx = self.begin().await?;
            let done = put_of_merge(&tx, lease, number, part).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }
}

/// Stores a part, in the transaction that completes its chunk.
pub(super) async fn put(tx: &Transaction, lease: Lease, part: &NewPart) -> Result<()> {
    let content = Param::Bytes(part.content.as_deref().map(Into::into));
    let mut params = params![
        lease.chunk.job,
        lease.chunk.number,
        lease.epoch,
        part.name.as_deref(),
        part.rows,
        part.bytes,
        &part.sha256,
        &part.content_hash,
    ]
    .to_vec();
    params.push(content);
    params.push(lease.nonce.into());
    tx.execute(sql!(shared "put_part"), &params).await?;
    Ok(())
}

async fn put_of_merge(
    tx: &Transaction,
    lease: SegmentLease,
    number: i64,
    part: &NewPart,
) -> Result<()> {
    advance::lock_job(tx, lease.job).await?;
    let row = tx.query_opt(sql!("lock_segment"), params![lease.job, lease.segment]).await?;
    let row = row.ok_or(StoreError::LeaseLost)?;
    if !transitions::is_segment_at(&row, lease, ChunkStatus::Processing)? {
        return Err(StoreError::LeaseLost);
    }
    let SegmentLease { job, epoch, nonce, .. } = lease;
    put(tx, Lease { chunk: ChunkId { job, number }, epoch, nonce }, part).await
}
