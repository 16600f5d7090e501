//! Parts: kept with the end of their chunk, listed for the merge, and removed.

use windlass_core::{ChunkId, ChunkStatus, JobId, JobStatus};
use windlass_drivers::{Param, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::{Kept, Lease, MERGED, NewPart, PartRow, Result, SegmentLease, rows};

/// Keeps a part, in the transaction that completes its chunk.
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
    tx.execute(sql!("put_part"), &params).await?;
    Ok(())
}

pub(super) async fn list(
    store: &PostgresStore,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<PartRow>> {
    store.read(sql!("parts"), params![job, after, limit], rows::part).await
}

pub(super) async fn redrive_chain(
    store: &PostgresStore,
    root: JobId,
) -> Result<Vec<(JobId, JobStatus)>> {
    store.read(sql!("redrive_chain"), params![root], rows::relative).await
}

pub(super) async fn put_merged(
    store: &PostgresStore,
    lease: SegmentLease,
    merged: &NewPart,
) -> Result<Kept> {
    let tx = store.begin().await?;
    advance::lock(&tx, lease.job).await?;
    let row = tx.query_opt(sql!("lock_segment"), params![lease.job, lease.segment]).await?;
    let held = match &row {
        Some(row) => {
            row.status::<ChunkStatus>("status")? == ChunkStatus::Processing
                && row.int("epoch")? == lease.epoch
                && row.int("nonce")? == lease.nonce
        }
        None => false,
    };
    if !held {
        tx.rollback().await?;
        return Ok(Kept::Lost);
    }
    let SegmentLease { job, epoch, nonce, .. } = lease;
    let whole = Lease { chunk: ChunkId { job, number: MERGED }, epoch, nonce };
    put(&tx, whole, merged).await?;
    tx.commit().await?;
    Ok(Kept::Yes)
}

pub(super) async fn remove(store: &PostgresStore, job: JobId) -> Result<()> {
    store.single(sql!("remove_parts"), params![job]).await.map(drop)
}
