//! Parts: kept with the end of their chunk, listed for the merge, and removed.

use windlass_core::{ChunkId, ChunkStatus, JobId, JobStatus};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::{Kept, Lease, MERGED, NewPart, PartRow, Result, SegmentLease, rows};

/// Keeps a part, in the transaction that completes its chunk.
pub(super) fn put(tx: &Transaction<'_>, lease: Lease, part: &NewPart) -> Result<()> {
    let NewPart { name, rows, bytes, sha256, content_hash, content } = part;
    let Lease { chunk: ChunkId { job, number }, epoch, nonce } = lease;
    let job = job.to_string();
    let params =
        params![job, number, epoch, name, rows, bytes, sha256, content_hash, content, nonce];
    tx.execute(sql!("put_part"), params).map(drop)
}

pub(super) async fn list(
    store: &SqliteStore,
    job: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<PartRow>> {
    let params = (job.to_string(), after, limit);
    store.read(move |tx| tx.query(sql!("parts"), params, |row| rows::part(row))).await
}

pub(super) async fn redrive_chain(
    store: &SqliteStore,
    root: JobId,
) -> Result<Vec<(JobId, JobStatus)>> {
    let params = [root.to_string()];
    store.read(move |tx| tx.query(sql!("redrive_chain"), params, |row| rows::relative(row))).await
}

pub(super) async fn put_merged(
    store: &SqliteStore,
    lease: SegmentLease,
    merged: &NewPart,
) -> Result<Kept> {
    let merged = merged.clone();
    let work = move |tx: &Transaction<'_>| {
        let segment = params![lease.job.to_string(), lease.segment];
        let held = tx.query_opt(sql!("lock_segment"), segment, |row| {
            let at_work = row.status::<ChunkStatus>("status")? == ChunkStatus::Processing;
            let same = row.int("epoch")? == lease.epoch && row.int("nonce")? == lease.nonce;
            Ok(at_work && same)
        })?;
        if held != Some(true) {
            return Ok(Kept::Lost);
        }
        let SegmentLease { job, epoch, nonce, .. } = lease;
        let whole = Lease { chunk: ChunkId { job, number: MERGED }, epoch, nonce };
        put(tx, whole, &merged)?;
        Ok(Kept::Yes)
    };
    store.write(work).await
}

pub(super) async fn remove(store: &SqliteStore, job: JobId) -> Result<()> {
    store.write(move |tx| tx.execute(sql!("remove_parts"), [job.to_string()])).await.map(drop)
}
