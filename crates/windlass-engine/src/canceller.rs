//! The canceller: a chunk that was ever claimed ends `CANCELLED` only by being claimed at a new
//! epoch and fenced, so that a worker that still sleeps over it can commit nothing any more.

use crate::Result;
use crate::engine::Engine;
use crate::executor::Chunk;
use crate::heart::Heart;
use crate::hold::Hold;
use std::sync::Arc;
use std::time::Duration;
use windlass_core::{JobId, JobStatus};
use windlass_data::Fence;
use windlass_store::Capabilities;

impl Engine {
    /// Cancels a job: nothing of it is claimed any more, and what was claimed is fenced and ended
    /// here and now.
    pub async fn cancel(&self, job: JobId) -> Result<JobStatus> {
        let status = self.store().cancel(job).await?;
        let by = self.capabilities("cancel", Some(job));
        while end_cancelled(self, &by).await? > 0 {}
        Ok(status)
    }
}

/// Fences and ends chunks of cancelled jobs; says how many it claimed.
pub(crate) async fn end_cancelled(engine: &Engine, by: &Capabilities) -> Result<usize> {
    let claimed = engine.store().claim_cancelled(by, 50).await?;
    let count = claimed.len();
    let heart = Arc::new(Heart::default());
    for chunk in claimed {
        // This process need not have the handler: nothing is worked any more.
        let id = chunk.lease.chunk.job;
        let Some(pinned) = engine.store().pinned(id).await? else { continue };
        let job = Arc::new(engine.resolve_to_end(pinned).await?);
        let fence = Fence { chunk: chunk.lease.chunk, epoch: chunk.lease.epoch, lost: false };
        let Some(ledger) = job.connection.fence(&[fence]).await?.pop().flatten() else { continue };
        let hold =
            Hold::new(engine.store().clone(), heart.clone(), chunk.lease, Duration::from_secs(30));
        let _ = Chunk::new(job, hold, chunk, ledger).cancel().await?;
    }
    Ok(count)
}
