//! The canceller: a chunk that was ever claimed ends `CANCELLED` only by being claimed at a new
//! epoch and fenced, so that a worker that still sleeps over it can commit nothing any more. The load
//! of a merge is fenced the same way. Until all of that is done the job is being cancelled: it is
//! reported as `PROCESSING`, and its dependents are not told.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::chunk_runner::Chunk;
use crate::execute::heartbeat::Heartbeat;
use crate::execute::lease::ChunkLease;
use crate::merge::destination::JobDestination;
use crate::merge::merge;
use crate::operate::availability::is_connection_error;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::Fence;
use windlass_core::{JobId, JobStatus};
use windlass_store::{Capabilities, ClaimedChunk, Lease, SegmentLease};

/// How long until a merge whose load could not be fenced is tried again.
const FENCE_AGAIN: Duration = Duration::from_secs(5);

/// How long a cancel waits for chunks that others have locked or claimed at this moment.
const COMPLETE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Engine {
    /// Cancels a job: nothing of it is claimed any more, and what was claimed is fenced and ended
    /// here and now. What cannot be fenced now, since its database is unavailable, is fenced by a
    /// worker or by another call; until then the job is `PROCESSING` and says why.
    pub async fn cancel(&self, job: JobId) -> Result<JobStatus> {
        let status = self.store().cancel(job).await?;
        let by = self.capabilities("cancel", Some(job));
        let ended = async {
            let give_up = Instant::now() + COMPLETE_WITHIN;
            loop {
                while end_cancelled(self, &by).await? > 0 {}
                let status = self.store().status(job).await?;
                // A heartbeat may have had a chunk locked, or another process is at it.
                let is_open = status.is_some_and(|status| !status.is_final());
                if !is_open || by.connections.is_empty() || Instant::now() > give_up {
                    break;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            discard_output(self).await
        };
        match ended.await {
            Ok(()) => {}
            Err(EngineError::Store(error)) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%job, %error, "the cancel is not complete; workers try again");
            }
        }
        Ok(self.store().status(job).await?.unwrap_or(status))
    }
}

/// Removes what cancelled jobs have put out: all their chunks are fenced, so that nobody adds to
/// it any more.
pub(crate) async fn discard_output(engine: &Engine) -> Result<()> {
    let mut failed = None;
    let connections = engine.claimable_connections();
    for (job, connection) in engine.store().discardable(&connections, 50).await? {
        // A database that is away must not keep the others waiting.
        match discard(engine, job, &connection).await {
            Ok(()) => {}
            Err(error) => {
                engine.connection_failed(&connection, &error);
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn discard(engine: &Engine, job: JobId, connection: &str) -> Result<()> {
    match engine.store().snapshot(job).await? {
        Some(snapshot) if snapshot.definition.step.kind.makes_parts() => {
            let context = engine.resolve_to_end(snapshot).await?;
            if let Some(destination) = JobDestination::of(&context)? {
                destination.clear(&context, merge::is_cancelled(engine, &context)).await?;
            }
        }
        _ => drop(engine.connection(connection)?.discard_emitted(job).await?),
    }
    engine.store().remove_parts(job).await?;
    Ok(engine.store().discarded(job).await?)
}

/// Fences and ends chunks and merges of cancelled jobs; says how many it claimed. One that cannot be
/// ended now does not keep the others from it.
pub(crate) async fn end_cancelled(engine: &Engine, by: &Capabilities) -> Result<usize> {
    let by = &engine.claimable(by);
    let claimed = engine.store().claim_cancelled(by, 50).await?;
    let merges = engine.store().claim_cancelled_merges(by, 50).await?;
    let count = claimed.len() + merges.len();
    let mut failed = None;
    // A database that does not answer is asked once for all chunks of a job; the leases of the others
    // expire, and they are claimed again when it answers.
    let mut unavailable = HashSet::new();
    for chunk in claimed {
        let job = chunk.lease.chunk.job;
        if !unavailable.contains(&job)
            && let Err(error) = end(engine, chunk).await
        {
            if is_connection_error(&error) {
                unavailable.insert(job);
            }
            failed = Some(error);
        }
    }
    for merge in merges {
        if let Err(error) = end_merge(engine, merge).await {
            let why = error.to_string();
            let _ = engine.store().release_segment(merge, Some(&why), false, FENCE_AGAIN).await?;
            failed = Some(error);
        }
    }
    failed.map_or(Ok(count), Err)
}

async fn end(engine: &Engine, chunk: ClaimedChunk) -> Result<()> {
    let Lease { chunk: id, epoch, nonce } = chunk.lease;
    let Some(snapshot) = engine.store().snapshot(id.job).await? else { return Ok(()) };
    let connection = snapshot.definition.source.connection.clone();
    let ended = async {
        let job = Arc::new(engine.resolve_to_end(snapshot).await?);
        let fence = Fence { chunk: id, epoch, nonce, lost: false };
        if let Some(ledger) = job.target.fence(&[fence]).await?.pop().flatten() {
            let (store, heartbeat) = (engine.store().clone(), Arc::new(Heartbeat::default()));
            let hold = ChunkLease::new(store, heartbeat, chunk.lease, Duration::from_secs(30));
            let _ = Chunk::new(job, hold, chunk, ledger).cancel().await?;
        }
        Ok(())
    };
    let ended: Result<()> = ended.await;
    if let Err(error) = &ended {
        engine.connection_failed(&connection, error);
    }
    ended
}

/// Ends a merge once no other merger can load for it.
async fn end_merge(engine: &Engine, lease: SegmentLease) -> Result<()> {
    let Some(snapshot) = engine.store().snapshot(lease.job).await? else { return Ok(()) };
    let mut note = None;
    if let Some(load) = &snapshot.definition.load {
        let fenced = merge::fence_load(engine, lease, load).await;
        if let Err(error) = &fenced {
            engine.connection_failed(&load.connection, error);
        }
        if fenced? {
            note = Some(format!("its load into {} was committed before the cancel", load.table));
        }
    }
    let _ = engine.store().end_cancelled_merge(lease, note.as_deref()).await?;
    Ok(())
}
