//! People steer a job; what a cancel leaves behind is ended.

use windlass_core::{JobId, JobStatus};
use windlass_drivers::rusqlite::{Row, params};

use super::transaction::Transaction;
use super::{SqliteStore, advance, sql};
use crate::fields::Fields;
use crate::transitions::{self, JobState, Steering};
use crate::values::{self, LEASE, millis};
use crate::{Capabilities, ClaimedChunk, Result, SegmentLease, rows};

pub(super) async fn steer(
    store: &SqliteStore,
    job: JobId,
    steering: Steering,
) -> Result<JobStatus> {
    store.write(move |tx| steer_in(tx, job, &steering)).await
}

fn steer_in(tx: &Transaction<'_>, job: JobId, steering: &Steering) -> Result<JobStatus> {
    let mut head = advance::lock(tx, job)?.ok_or_else(|| transitions::no_job(job))?;
    let made = transitions::steer(&head, steering)?;
    advance::apply(tx, &mut head, &made)?;
    let id = job.to_string();
    match steering {
        Steering::Pause { .. } | Steering::Resume => {}
        Steering::Cancel => {
            // A failed segment ends with the job, too; the load of a failed merge may still commit.
            let reopened = tx.execute(sql!("retry_segments"), [&id])?;
            let (merge, _) = values::merge()?;
            let segments = tx.execute(sql!("cancel_segments"), [&id, &merge])?;
            tx.execute(sql!("suspend_merge"), [&id])?;
            let chunks = tx.execute(sql!("cancel_chunks"), [&id])?;
            let segments = reopened as i64 - segments as i64;
            open(tx, &mut head, segments, -(chunks as i64))?;
        }
        Steering::Retry => {
            let segments = tx.execute(sql!("retry_segments"), [&id])?;
            let chunks = tx.execute(sql!("retry_chunks"), [&id])?;
            open(tx, &mut head, segments as i64, chunks as i64)?;
        }
    }
    advance::advance(tx, &mut head)?;
    Ok(head.reported_status())
}

fn open(tx: &Transaction<'_>, head: &mut JobState, segments: i64, chunks: i64) -> Result<()> {
    tx.execute(sql!("open_job"), params![head.id.to_string(), segments, chunks])?;
    head.open_segments += segments;
    head.open_chunks += chunks;
    Ok(())
}

pub(super) async fn claim_cancelled(
    store: &SqliteStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<ClaimedChunk>> {
    let by = by.clone();
    let claim = move |tx: &Transaction<'_>| {
        let connections = serde_json::to_string(&by.connections)?;
        let only = by.only.map(|id| id.to_string());
        let picked =
            tx.query(sql!("pick_cancelled"), params![connections, only, limit], |row| {
                Ok((row.text("job_id")?, row.int("number")?, row.flag("lost")?))
            })?;
        let take = |(job, number, lost): (String, i64, bool)| {
            let params = params![job, number, by.worker, lost, millis(LEASE)];
            tx.query_one(sql!("take_cancelled"), params, |row| rows::claimed_chunk(row))
        };
        picked.into_iter().map(take).collect()
    };
    store.write(claim).await
}

pub(super) async fn claim_cancelled_merges(
    store: &SqliteStore,
    by: &Capabilities,
    limit: u32,
) -> Result<Vec<SegmentLease>> {
    let by = by.clone();
    let claim = move |tx: &Transaction<'_>| {
        let connections = serde_json::to_string(&by.connections)?;
        let only = by.only.map(|id| id.to_string());
        let params = params![connections, only, limit];
        let picked = tx.query(sql!("pick_cancelled_merges"), params, |row| {
            Ok((row.text("job_id")?, row.int("number")?))
        })?;
        let take = |(job, number): (String, i64)| {
            let params = params![job, number, by.worker, millis(LEASE)];
            tx.query_one(sql!("take_segment"), params, |row| Ok(rows::claimed_segment(row)?.lease))
        };
        picked.into_iter().map(take).collect()
    };
    store.write(claim).await
}

pub(super) async fn discardable(
    store: &SqliteStore,
    connections: &[String],
    limit: u32,
) -> Result<Vec<(JobId, String)>> {
    let params = (serde_json::to_string(connections)?, limit);
    let read = |row: &Row<'_>| Ok((row.id("id")?, row.text("connection")?));
    store.read(move |tx| tx.query(sql!("discardable"), params, read)).await
}

pub(super) async fn discarded(store: &SqliteStore, job: JobId) -> Result<()> {
    store.write(move |tx| tx.execute(sql!("discarded"), [job.to_string()])).await.map(drop)
}
