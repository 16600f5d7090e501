//! Keeps the read snapshots of jobs, and plans a job again whose snapshot is lost.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::JobId;

use super::{PostgresStore, Transaction, advance, params, sql};
use crate::transitions::{self, JobState};
use crate::values::{self, clean, millis};
use crate::{LostReadSnapshot, NewReadSnapshot, ReadSnapshotRow, ReadSnapshotStore, Result, rows};

#[async_trait]
impl ReadSnapshotStore for PostgresStore {
    async fn read_snapshot(&self, job: JobId) -> Result<Option<ReadSnapshotRow>> {
        self.read_first(sql!(shared "read_snapshot"), params![job], rows::read_snapshot).await
    }

    async fn renew_read_snapshot(&self, job: JobId, number: i64, lease: Duration) -> Result<bool> {
        let params = params![job, number, millis(lease)];
        Ok(self.execute(sql!("renew_read_snapshot"), params).await? > 0)
    }

    async fn release_read_snapshot(&self, job: JobId, number: i64) -> Result<()> {
        self.execute(sql!(shared "release_read_snapshot"), params![job, number]).await.map(drop)
    }

    async fn expire_read_snapshot(&self, job: JobId, number: i64) -> Result<()> {
        self.execute(sql!("expire_read_snapshot"), params![job, number]).await.map(drop)
    }

    async fn lost_read_snapshots(&self) -> Result<Vec<LostReadSnapshot>> {
        self.read(sql!("lost_read_snapshots"), &[], rows::lost_read_snapshot).await
    }

    async fn read_again(&self, job: JobId, number: i64) -> Result<bool> {
        let run = || async {
            let tx = self.begin().await?;
            let done = read_again(&tx, job, number).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }

    async fn fail_read(&self, job: JobId, number: i64, error: &str) -> Result<bool> {
        let run = || async {
            let tx = self.begin().await?;
            let done = fail_read(&tx, job, number, error).await;
            tx.finish(done).await
        };
        self.repeat(run).await
    }
}

async fn read_again(tx: &Transaction, job: JobId, number: i64) -> Result<bool> {
    let Some(mut job) = lock_lost(tx, job, number).await? else { return Ok(false) };
    discard(tx, &mut job, 1).await?;
    Ok(true)
}

async fn fail_read(tx: &Transaction, job: JobId, number: i64, error: &str) -> Result<bool> {
    let Some(mut job) = lock_lost(tx, job, number).await? else { return Ok(false) };
    if let Some(transition) = transitions::fail(&job, clean(error)) {
        advance::apply(tx, &mut job, &transition).await?;
    }
    tx.execute(sql!(shared "release_read_snapshot"), params![job.id, number]).await?;
    Ok(true)
}

/// Records the snapshot of a page, in the transaction that inserts its chunks.
pub(super) async fn put(tx: &Transaction, job: JobId, new: &NewReadSnapshot) -> Result<()> {
    let NewReadSnapshot { number, server, name, fingerprint, worker, lease } = new;
    let params = params![job, *number, server, name, fingerprint, worker, millis(*lease)];
    tx.execute(sql!("put_read_snapshot"), params).await?;
    Ok(())
}

/// Locks a job that can be read again because this snapshot of it is lost.
async fn lock_lost(tx: &Transaction, job: JobId, number: i64) -> Result<Option<JobState>> {
    let Some(job) = advance::lock_job(tx, job).await? else { return Ok(None) };
    let lost = tx.query_opt(sql!("lock_lost_read_snapshot"), params![job.id, number]).await?;
    Ok(lost.map(|_| job).filter(JobState::reads))
}

/// Discards everything that was read of a job, and queues its planning again. Counts this many lost snapshots.
pub(super) async fn discard(tx: &Transaction, job: &mut JobState, losses: i64) -> Result<()> {
    for sql in [
        sql!(shared "discard_segments"),
        sql!(shared "discard_chunks"),
        sql!(shared "remove_parts"),
        sql!(shared "discard_dead_letters"),
        sql!(shared "reset_job"),
    ] {
        tx.execute(sql, params![job.id]).await?;
    }
    tx.execute(sql!("requeue_plan"), params![job.id, values::plan()?.0]).await?;
    tx.execute(sql!(shared "count_lost_read_snapshot"), params![job.id, losses]).await?;
    (job.open_segments, job.open_chunks) = (1, 0);
    tx.signal();
    Ok(())
}

/// Whether the chunks of a job were planned under a read snapshot.
pub(super) async fn has_one(tx: &Transaction, job: JobId) -> Result<bool> {
    Ok(tx.query_opt(sql!(shared "read_snapshot"), params![job]).await?.is_some())
}
