//! Parts: kept with the end of their chunk, listed for the merge, and removed.

use windlass_core::{ChunkStatus, JobId, JobStatus};
use windlass_db::{Param, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::{Kept, MERGED, NewPart, PartRow, Result, SegmentLease, rows};

/// Keeps a part, in the transaction that completes its chunk.
pub(super) async fn put(
    tx: &Transaction,
    job: JobId,
    chunk: i64,
    epoch: i64,
    part: &NewPart,
) -> Result<()> {
    let content = Param::Bytes(part.content.as_deref().map(Into::into));
    let mut params = params![
        job,
        chunk,
        epoch,
        part.name.as_deref(),
        part.rows,
        part.bytes,
        &part.sha256,
        &part.content_hash,
    ]
    .to_vec();
    params.push(content);
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

pub(super) async fn family(store: &PostgresStore, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
    store.read(sql!("family"), params![root], rows::relative).await
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
        }
        None => false,
    };
    if !held {
        tx.rollback().await?;
        return Ok(Kept::Lost);
    }
    put(&tx, lease.job, MERGED, lease.epoch, merged).await?;
    tx.commit().await?;
    Ok(Kept::Yes)
}

pub(super) async fn remove(store: &PostgresStore, job: JobId) -> Result<()> {
    store.single(sql!("remove_parts"), params![job]).await.map(drop)
}
