//! Parts: kept with the end of their chunk, listed for the merge, and removed.

use windlass_core::{ChunkStatus, JobId, JobStatus};
use windlass_db::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::{Kept, MERGED, NewPart, PartRow, Result, SegmentLease, rows};

/// Keeps a part, in the transaction that completes its chunk.
pub(super) fn put(
    tx: &Transaction<'_>,
    job: JobId,
    chunk: i64,
    epoch: i64,
    part: &NewPart,
) -> Result<()> {
    let NewPart { name, rows, bytes, sha256, content_hash, content } = part;
    let job = job.to_string();
    let params = params![job, chunk, epoch, name, rows, bytes, sha256, content_hash, content];
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

pub(super) async fn family(store: &SqliteStore, root: JobId) -> Result<Vec<(JobId, JobStatus)>> {
    let params = [root.to_string()];
    store.read(move |tx| tx.query(sql!("family"), params, |row| rows::relative(row))).await
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
            Ok(at_work && row.int("epoch")? == lease.epoch)
        })?;
        if held != Some(true) {
            return Ok(Kept::Lost);
        }
        put(tx, lease.job, MERGED, lease.epoch, &merged)?;
        Ok(Kept::Yes)
    };
    store.write(work).await
}

pub(super) async fn remove(store: &SqliteStore, job: JobId) -> Result<()> {
    store.write(move |tx| tx.execute(sql!("remove_parts"), [job.to_string()])).await.map(drop)
}
