//! People steer a job; what a cancel leaves behind is ended.

use windlass_core::{JobId, JobStatus};
use windlass_drivers::{Row, Transaction};

use super::{PostgresStore, advance, params, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState, Steering};
use crate::values::{self, LEASE, millis};
use crate::{Capabilities, ClaimedChunk, Result, SegmentLease, rows};

pub(super) async fn steer(
    store: &PostgresStore,
    job: JobId,
    steering: Steering,
) -> Result<JobStatus> {
    let tx = store.begin().await?;
    match steer_in(&tx, job, &steering).await {
        Ok(status) => {
            tx.commit().await?;
            Ok(status)
        }
        Err(refused) => {
            // Without a rollback the connection is closed, which comes to the same; the caller is
            // to hear why it was refused.
            let _ = tx.rollback().await;
            Err(refused)
        }
    }
}

async fn steer_in(tx: &Transaction, job: JobId, steering: &Steering) -> Result<JobStatus> {
    let mut head = advance::lock(tx, job).await?.ok_or_else(|| transitions::no_job(job))?;
    let made = transitions::steer(&head, steering)?;
    advance::apply(tx, &mut head, &made).await?;
    match steering {
        Steering::Pause { .. } | Steering::Resume => {}
        Steering::Cancel => {
            // A failed segment ends with the job, too; the load of a failed merge may still commit.
            let reopened = tx.execute(sql!("retry_segments"), params![job]).await?;
            let (merge, _) = values::merge()?;
            let segments = tx.execute(sql!("cancel_segments"), params![job, merge]).await?;
            tx.execute(sql!("suspend_merge"), params![job]).await?;
            let chunks = tx.execute(sql!("cancel_chunks"), params![job]).await?;
            let segments = reopened as i64 - segments as i64;
            open(tx, &mut head, segments, -(chunks as i64)).await?;
        }
        Steering::Retry => {
            let segments = tx.execute(sql!("retry_segments"), params![job]).await?;
            let chunks = tx.execute(sql!("retry_chunks"), params![job]).await?;
            open(tx, &mut head, segments as i64, chunks as i64).await?;
        }
    }
    advance::advance(tx, &mut head).await?;
    Ok(head.reported_status())
}

async fn open(tx: &Transaction, head: &mut JobState, segments: i64, chunks: i64) -> Result<()> {
    tx.execute(sql!("open_job"), params![head.id, segments, chunks]).await?;
    head.open_segments += segments;
    head.open_chunks += chunks;
    Ok(())
}

pub(super) async fn claim_cancelled(
    store: &PostgresStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedChunk>> {
    let params = params![by.connections.as_slice(), by.only, limit, &by.worker, millis(LEASE)];
    let claimed = store.claim(sql!("claim_cancelled"), params).await?;
    claimed.iter().map(rows::claimed_chunk).collect()
}

pub(super) async fn claim_cancelled_merges(
    store: &PostgresStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<SegmentLease>> {
    let params = params![by.connections.as_slice(), by.only, limit, &by.worker, millis(LEASE)];
    let claimed = store.claim(sql!("claim_cancelled_merges"), params).await?;
    claimed.iter().map(|row| Ok(rows::claimed_segment(row)?.lease)).collect()
}

pub(super) async fn discardable(
    store: &PostgresStore,
    connections: &[String],
    limit: u32,
) -> Result<Vec<(JobId, String)>> {
    let read = |row: &Row| Ok((row.id("id")?, row.text("connection")?));
    store.read(sql!("discardable"), params![connections, limit], read).await
}

pub(super) async fn discarded(store: &PostgresStore, job: JobId) -> Result<()> {
    store.single(sql!("discarded"), params![job]).await.map(drop)
}
