//! The canceller: a chunk that was ever claimed ends `CANCELLED` only by being claimed at a new
//! epoch and fenced, so that a worker that still sleeps over it can commit nothing any more.

use crate::engine::Engine;
use crate::executor::Chunk;
use crate::files::Shelf;
use crate::heart::Heart;
use crate::hold::Hold;
use crate::{Result, merger};
use std::sync::Arc;
use std::time::Duration;
use windlass_core::{JobId, JobStatus, PaginationState};
use windlass_data::Fence;
use windlass_store::{Capabilities, ClaimedChunk, Lease};

impl Engine {
    /// Cancels a job: nothing of it is claimed any more, and what was claimed is fenced and ended
    /// here and now.
    pub async fn cancel(&self, job: JobId) -> Result<JobStatus> {
        let status = self.store().cancel(job).await?;
        let by = self.capabilities("cancel", Some(job));
        while end_cancelled(self, &by).await? > 0 {}
        discard_output(self).await?;
        Ok(status)
    }
}

/// Removes what cancelled jobs have put out: all their chunks are fenced, so that nobody adds to
/// it any more.
pub(crate) async fn discard_output(engine: &Engine) -> Result<()> {
    let mut failed = None;
    for (job, connection) in engine.store().discardable(&engine.open_connections(), 50).await? {
        // A database that is away must not keep the others waiting.
        match discard(engine, job, &connection).await {
            Ok(()) => {}
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn discard(engine: &Engine, job: JobId, connection: &str) -> Result<()> {
    let pinned = engine.store().pinned(job).await?;
    // A merger that sleeps over its load is no chunk, and fenced here.
    if let Some(load) = pinned.as_ref().and_then(|pinned| pinned.definition.load.as_ref())
        && is_merging(engine, job).await?
    {
        merger::fence_load(engine, job, load).await?;
    }
    match pinned {
        Some(pinned) if pinned.definition.step.kind.makes_parts() => {
            let context = engine.resolve_to_end(pinned).await?;
            if let Some(shelf) = Shelf::of(&context)? {
                shelf.clear(&context, merger::is_cancelled(engine, &context)).await?;
            }
        }
        _ => drop(engine.connection(connection)?.discard(job).await?),
    }
    engine.store().remove_parts(job).await?;
    Ok(engine.store().discarded(job).await?)
}

/// Whether it came to the merge.
async fn is_merging(engine: &Engine, job: JobId) -> Result<bool> {
    let segments = engine.store().segments(job).await?;
    Ok(segments.iter().any(|segment| segment.state == PaginationState::Merge))
}

/// Fences and ends chunks of cancelled jobs; says how many it claimed. One that cannot be ended
/// now does not keep the others from it.
pub(crate) async fn end_cancelled(engine: &Engine, by: &Capabilities) -> Result<usize> {
    let claimed = engine.store().claim_cancelled(by, 50).await?;
    let count = claimed.len();
    let mut failed = None;
    for chunk in claimed {
        if let Err(error) = end(engine, chunk).await {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(count), Err)
}

async fn end(engine: &Engine, chunk: ClaimedChunk) -> Result<()> {
    let Lease { chunk: id, epoch, nonce } = chunk.lease;
    let Some(pinned) = engine.store().pinned(id.job).await? else { return Ok(()) };
    let job = Arc::new(engine.resolve_to_end(pinned).await?);
    let fence = Fence { chunk: id, epoch, nonce, lost: false };
    if let Some(ledger) = job.connection.fence(&[fence]).await?.pop().flatten() {
        let (store, heart) = (engine.store().clone(), Arc::new(Heart::default()));
        let hold = Hold::new(store, heart, chunk.lease, Duration::from_secs(30));
        let _ = Chunk::new(job, hold, chunk, ledger).cancel().await?;
    }
    Ok(())
}
