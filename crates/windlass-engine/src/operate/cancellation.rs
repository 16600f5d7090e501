//! Cancels jobs: fences their chunks and merges, then deletes their output.
//!
//! A chunk that was ever leased becomes `CANCELLED` only after it is leased at a new epoch and fenced,
//! so that a stalled worker cannot commit anything afterwards. The load of a merge is fenced the same
//! way. Until then the job is shown as `PROCESSING`, and its dependents are not triggered.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::chunk_runner::ChunkRunner;
use crate::execute::heartbeat::Heartbeat;
use crate::execute::lease::ChunkLease;
use crate::merge::copy;
use crate::merge::destination::{self, JobDestination};
use crate::merge::merge;
use crate::operate::availability::is_connection_error;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::Fence;
use windlass_core::{JobId, JobStatus};
use windlass_store::{Capabilities, HandBack, Lease, LeasedChunk, SegmentLease};

/// Chunks, merges or jobs taken per round.
const BATCH: u32 = 50;

/// Wait before fencing a load is retried.
const FENCE_RETRY_WAIT: Duration = Duration::from_secs(5);

/// How long [`Engine::cancel`] waits for chunks that other processes have locked or leased.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it checks them.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Engine {
    /// Cancels a job: no chunk of it is leased any more, and leased chunks are fenced and ended now.
    /// Chunks that cannot be fenced because their database is unavailable are fenced later by a worker or
    /// by another call. Until then the job is `PROCESSING` and shows the reason.
    ///
    /// # Errors
    /// There is no such job, its status does not allow it, or the store fails.
    pub async fn cancel(&self, job: JobId) -> Result<JobStatus> {
        let status = self.store().cancel(job).await?;
        let by = self.capabilities("cancel", Some(job));
        let ended = async {
            let give_up = Instant::now() + CANCEL_TIMEOUT;
            loop {
                while end_cancelled(self, &by).await? > 0 {}
                let status = self.store().status(job).await?;
                // A heartbeat may have locked a chunk, or another process is cancelling too.
                let is_open = status.is_some_and(|status| !status.is_final());
                if !is_open || by.connections.is_empty() || Instant::now() > give_up {
                    break;
                }
                tokio::time::sleep(CANCEL_POLL_INTERVAL).await;
            }
            discard_output(self).await
        };
        match ended.await {
            Ok(()) => {}
            Err(EngineError::Store(error)) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%job, %error, "job not completely cancelled yet; workers will retry");
            }
        }
        let status = self.store().status(job).await?.unwrap_or(status);
        tracing::info!(%job, %status, "job cancelled");
        Ok(status)
    }
}

/// Deletes the output of cancelled jobs. All their chunks are fenced, so no worker can add to it.
pub(crate) async fn discard_output(engine: &Engine) -> Result<()> {
    let mut failed = None;
    let connections = engine.leasable_connections();
    for (job, connection) in engine.store().discardable(&connections, BATCH).await? {
        // An unavailable database must not delay jobs on other databases.
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
                destination.delete_all(&context, merge::is_cancelled(engine, &context)).await?;
            }
        }
        _ => drop(engine.connection(connection)?.discard_emitted(job).await?),
    }
    engine.store().remove_parts(job).await?;
    Ok(engine.store().mark_discarded(job).await?)
}

/// Fences and ends chunks and merges of cancelled jobs. Returns how many it leased. A failure of one
/// does not prevent the rest from being ended.
pub(crate) async fn end_cancelled(engine: &Engine, by: &Capabilities) -> Result<usize> {
    let by = &engine.leasable(by);
    let leased = engine.store().lease_cancelled(by, BATCH).await?;
    let merges = engine.store().lease_cancelled_merges(by, BATCH).await?;
    let count = leased.len() + merges.len();
    let mut failed = None;
    // An unavailable database is tried once per job. The leases of the job's remaining chunks expire, and
    // they are leased again when the database is available.
    let mut unavailable = HashSet::new();
    for chunk in leased {
        let job = chunk.lease.chunk.job;
        if !unavailable.contains(&job)
            && let Err(error) = end_chunk(engine, chunk).await
        {
            if is_connection_error(&error) {
                unavailable.insert(job);
            }
            failed = Some(error);
        }
    }
    for merge in merges {
        if let Err(error) = end_merge(engine, merge).await {
            let back = HandBack::new(Some(&error.to_string()), false, FENCE_RETRY_WAIT);
            let released = engine.store().release_segment(merge, back);
            ignore_lost(released.await.map_err(EngineError::from))?;
            failed = Some(error);
        }
    }
    failed.map_or(Ok(count), Err)
}

async fn end_chunk(engine: &Engine, chunk: LeasedChunk) -> Result<()> {
    let Lease { chunk: id, epoch, nonce } = chunk.lease;
    let Some(snapshot) = engine.store().snapshot(id.job).await? else { return Ok(()) };
    let connection = snapshot.definition.source.connection.clone();
    let ended = async {
        let job = Arc::new(engine.resolve_to_end(snapshot).await?);
        let fence = Fence { chunk: id, epoch, nonce, lost: false };
        if let Some(ledger) = job.target.fence(&[fence]).await?.pop().flatten() {
            let (store, heartbeat) = (engine.store().clone(), Arc::new(Heartbeat::default()));
            let lease = ChunkLease::new(store, heartbeat, chunk.lease, Duration::from_secs(30));
            ignore_lost(ChunkRunner::new(job, lease, chunk, ledger).cancel().await)?;
        }
        Ok(())
    };
    let ended: Result<()> = ended.await;
    if let Err(error) = &ended {
        engine.connection_failed(&connection, error);
    }
    ended
}

/// Ends a merge after fencing its load, and deletes the report that it has written.
async fn end_merge(engine: &Engine, lease: SegmentLease) -> Result<()> {
    let Some(snapshot) = engine.store().snapshot(lease.job).await? else { return Ok(()) };
    let mut note = None;
    if let Some(load) = &snapshot.definition.load {
        let fenced = merge::fence_load(engine, lease, load).await;
        if let Err(error) = &fenced {
            engine.connection_failed(&load.connection, error);
        }
        match fenced? {
            true => {
                note = Some(format!(
                    "the load into {} was committed before the job was cancelled",
                    load.table
                ));
            }
            false => copy::delete_staged(&snapshot).await?,
        }
    }
    if let Some(report) = merge::stored_report(engine, lease.job).await? {
        let kept = destination::remove_report(lease.job, &report).await?;
        note = match (note, kept) {
            (Some(note), Some(kept)) => Some(format!("{note}; {kept}")),
            (note, kept) => note.or(kept),
        };
    }
    let ended = engine.store().end_cancelled_merge(lease, note.as_deref()).await;
    ignore_lost(ended.map_err(EngineError::from))
}

/// A chunk or merge that another process has leased is ended by that process.
fn ignore_lost(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.is_lease_lost() => Ok(()),
        result => result,
    }
}
