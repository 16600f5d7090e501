//! Keeps the read snapshots of jobs, and plans a job again whose snapshot is lost.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, advance, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState};
use crate::values::{self, clean, millis};
use crate::{LostReadSnapshot, NewReadSnapshot, ReadSnapshotRow, ReadSnapshotStore, Result, rows};

#[async_trait]
impl ReadSnapshotStore for SqliteStore {
    async fn read_snapshot(&self, job: JobId) -> Result<Option<ReadSnapshotRow>> {
        let sql = sql!(shared "read_snapshot");
        self.query_opt(sql, [job.to_string()], |row| rows::read_snapshot(row)).await
    }

    async fn renew_read_snapshot(&self, job: JobId, number: i64, lease: Duration) -> Result<bool> {
        let params = (job.to_string(), number, millis(lease));
        Ok(self.execute(sql!("renew_read_snapshot"), params).await? > 0)
    }

    async fn release_read_snapshot(&self, job: JobId, number: i64) -> Result<()> {
        let params = (job.to_string(), number);
        self.execute(sql!(shared "release_read_snapshot"), params).await.map(drop)
    }

    async fn expire_read_snapshot(&self, job: JobId, number: i64) -> Result<()> {
        let params = (job.to_string(), number);
        self.execute(sql!("expire_read_snapshot"), params).await.map(drop)
    }

    async fn lost_read_snapshots(&self) -> Result<Vec<LostReadSnapshot>> {
        self.query(sql!("lost_read_snapshots"), [], |row| rows::lost_read_snapshot(row)).await
    }

    async fn read_again(&self, job: JobId, number: i64) -> Result<bool> {
        let again = move |tx: &Transaction<'_>| {
            let Some(mut job) = lock_lost(tx, job, number)? else { return Ok(false) };
            discard(tx, &mut job, 1)?;
            Ok(true)
        };
        self.write(again).await
    }

    async fn fail_read(&self, job: JobId, number: i64, error: &str) -> Result<bool> {
        let error = clean(error);
        let fail = move |tx: &Transaction<'_>| {
            let Some(mut job) = lock_lost(tx, job, number)? else { return Ok(false) };
            if let Some(transition) = transitions::fail(&job, error) {
                advance::apply(tx, &mut job, &transition)?;
            }
            let params = params![job.id.to_string(), number];
            tx.execute(sql!(shared "release_read_snapshot"), params)?;
            Ok(true)
        };
        self.write(fail).await
    }
}

/// Records the snapshot of a page, in the transaction that inserts its chunks.
pub(super) fn put(tx: &Transaction<'_>, job: JobId, new: &NewReadSnapshot) -> Result<()> {
    let NewReadSnapshot { number, server, name, fingerprint, worker, lease } = new;
    let (job, lease) = (job.to_string(), millis(*lease));
    let params = params![job, number, server, name, fingerprint, worker, lease];
    tx.execute(sql!("put_read_snapshot"), params).map(drop)
}

/// Reads a job that can be read again because this snapshot of it is lost.
fn lock_lost(tx: &Transaction<'_>, job: JobId, number: i64) -> Result<Option<JobState>> {
    let Some(job) = advance::lock_job(tx, job)? else { return Ok(None) };
    let params = params![job.id.to_string(), number];
    let lost = tx.query_opt(sql!("lock_lost_read_snapshot"), params, |row| row.int("number"))?;
    Ok(lost.map(|_| job).filter(JobState::reads))
}

/// Discards everything that was read of a job, and queues its planning again. Counts this many lost snapshots.
pub(super) fn discard(tx: &Transaction<'_>, job: &mut JobState, losses: i64) -> Result<()> {
    let id = job.id.to_string();
    for sql in [
        sql!(shared "discard_segments"),
        sql!(shared "discard_chunks"),
        sql!(shared "remove_parts"),
        sql!(shared "discard_dead_letters"),
        sql!(shared "reset_job"),
    ] {
        tx.execute(sql, [&id])?;
    }
    tx.execute(sql!("requeue_plan"), params![id, values::plan()?.0])?;
    tx.execute(sql!(shared "count_lost_read_snapshot"), params![id, losses])?;
    (job.open_segments, job.open_chunks) = (1, 0);
    tx.signal()
}

/// Whether the chunks of a job were planned under a read snapshot.
pub(super) fn has_one(tx: &Transaction<'_>, job: JobId) -> Result<bool> {
    let found =
        tx.query_opt(sql!(shared "read_snapshot"), [job.to_string()], |row| row.int("number"))?;
    Ok(found.is_some())
}
