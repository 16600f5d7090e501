//! The pruner: removes what has ended so long ago that its job type's `retention` gives it up.
//!
//! A ledger row goes when no chunk of its job can be claimed any more: its job completed, was
//! cancelled, or is closed, after which it cannot be retried. A worker that still holds one from
//! before finds no row to compare with, and commits nothing.

use crate::Result;
use crate::engine::Engine;
use crate::worker::Shutdown;
use serde::Serialize;
use std::time::Duration;
use windlass_core::{JobId, Retention};

/// How often it looks.
const ROUND: Duration = Duration::from_secs(600);
/// Jobs it takes up at a time.
const JOBS: u32 = 100;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// Jobs, with everything of them.
    pub jobs: u64,
    /// Jobs that are kept and have lost their chunks and ledger.
    pub emptied: u64,
    /// Chunks.
    pub chunks: u64,
    /// Ledger rows and held and emitted rows beside the user's data.
    pub ledger_rows: u64,
    /// Dead letters that went before their job.
    pub dead_letters: u64,
}

/// Prunes now and then until shutdown.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    while !shutdown.requested() {
        tokio::select! {
            pruned = engine.prune(None) => match pruned {
                Ok(pruned) if pruned == Pruned::default() => {}
                Ok(pruned) => tracing::info!(?pruned, "pruned what ended long ago"),
                Err(error) => tracing::warn!(%error, "pruning failed; trying again later"),
            },
            // What is half pruned goes on next time.
            () = shutdown.wait() => {}
        }
        tokio::select! {
            () = tokio::time::sleep(ROUND) => {}
            () = shutdown.wait() => {}
        }
    }
}

impl Engine {
    /// Removes what has ended longer ago than its job type says, or than `all` says for every one.
    pub async fn prune(&self, all: Option<&Retention>) -> Result<Pruned> {
        let (mut pruned, mut result) = (Pruned::default(), Ok(()));
        for job_type in self.store().job_types().await? {
            let defined = self.config().jobs.get(&job_type).map(|job_type| &job_type.retention);
            let retention = all.or(defined).cloned().unwrap_or_default();
            // A database that is away must not keep the other job types waiting.
            result = result.and(self.prune_type(&job_type, &retention, &mut pruned).await);
        }
        result.map(|()| pruned)
    }

    async fn prune_type(
        &self,
        job_type: &str,
        retention: &Retention,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let store = self.store();
        if let Some(age) = retention.dead_letters {
            pruned.dead_letters += store.remove_letters(job_type, age).await?;
        }
        loop {
            let before = *pruned;
            for job in store.expired(job_type, retention.jobs, JOBS).await? {
                if store.close(job).await?
                    && let Some(rows) = self.prune_ledger(job).await?
                {
                    pruned.ledger_rows += rows;
                    pruned.chunks += store.remove(job).await?;
                    pruned.jobs += 1;
                }
            }
            for job in store.prunable(job_type, retention.chunks, JOBS).await? {
                if let Some(rows) = self.prune_ledger(job).await? {
                    pruned.ledger_rows += rows;
                    pruned.chunks += store.remove_chunks(job).await?;
                    pruned.emptied += 1;
                }
            }
            // Those whose connection this process lacks are left to another.
            if *pruned == before {
                return Ok(());
            }
        }
    }

    /// Removes the ledger rows of a job; nothing is said where this process cannot reach them.
    async fn prune_ledger(&self, job: JobId) -> Result<Option<u64>> {
        let Some(pinned) = self.store().pinned(job).await? else { return Ok(None) };
        match self.connection(&pinned.definition.source.connection) {
            Ok(connection) => Ok(Some(connection.prune(job).await?)),
            Err(_) => Ok(None),
        }
    }
}
