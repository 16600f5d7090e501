//! The pruner: removes what has ended so long ago that its job type's `retention` gives it up.
//!
//! A ledger row goes when no chunk of its job can be claimed any more: its job completed, was
//! cancelled, or is closed, after which it cannot be retried. A worker that still holds one from
//! before finds no row to compare with, and commits nothing.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::worker::Shutdown;
use serde::Serialize;
use std::collections::HashSet;
use std::time::Duration;
use windlass_connectors::ConnectorError;
use windlass_core::{JobId, JobStatus, Retention};

/// How often it looks.
const ROUND: Duration = Duration::from_secs(600);
/// How long alerts are kept: longer than what happened is looked for, so that none is raised again.
const ALERTS: Duration = Duration::from_secs(30 * 24 * 3600);
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
    /// Alerts.
    pub alerts: u64,
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
            () = tokio::time::sleep(ROUND) => engine.renew_generations().await,
            () = shutdown.wait() => {}
        }
    }
}

impl Engine {
    /// Removes what has ended longer ago than its job type says, or than `all` says for every one.
    pub async fn prune(&self, all: Option<&Retention>) -> Result<Pruned> {
        let alerts = self.store().remove_alerts(ALERTS).await?;
        let (mut pruned, mut result) = (Pruned { alerts, ..Pruned::default() }, Ok(()));
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
        let (store, connections) = (self.store(), self.claimable_connections());
        if let Some(age) = retention.dead_letters {
            pruned.dead_letters += store.remove_letters(job_type, age).await?;
        }
        let (mut result, mut tried) = (Ok(()), HashSet::new());
        loop {
            let expired = store.expired(job_type, retention.jobs, &connections, JOBS).await?;
            let emptied = store.prunable(job_type, retention.chunks, &connections, JOBS).await?;
            let before = tried.len();
            for (job, whole) in [(expired, true), (emptied, false)]
                .into_iter()
                .flat_map(|(jobs, whole)| jobs.into_iter().map(move |job| (job, whole)))
            {
                // One that could not be pruned must not keep the others waiting.
                if tried.insert((job, whole)) {
                    let age = whole.then_some(retention.jobs);
                    result = result.and(self.prune_job(job, age, pruned).await);
                }
            }
            if tried.len() == before {
                return result;
            }
        }
    }

    /// Prunes one job: all of it where it has ended longer ago than `age`, or else its chunks.
    async fn prune_job(
        &self,
        job: JobId,
        age: Option<Duration>,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let store = self.store();
        if age.is_some() && self.is_failed_redrive(job).await? {
            // Its ledger says which of its letters are settled; nobody would know afterwards. It is
            // pruned when it has been cancelled for as long.
            self.cancel(job).await?;
            return Ok(());
        }
        if let Some(age) = age
            && !store.close(job, age).await?
        {
            return Ok(());
        }
        let Some(rows) = self.prune_ledger(job).await? else { return Ok(()) };
        pruned.ledger_rows += rows;
        match age {
            Some(_) => {
                pruned.chunks += store.remove(job).await?;
                pruned.jobs += 1;
            }
            None => {
                pruned.chunks += store.remove_chunks(job).await?;
                pruned.emptied += 1;
            }
        }
        Ok(())
    }

    /// Whether a job is a redrive that failed and still has chunks that are not fenced.
    async fn is_failed_redrive(&self, job: JobId) -> Result<bool> {
        let Some(found) = self.store().job(job).await? else { return Ok(false) };
        if found.status != JobStatus::Failed || found.chunks.pending + found.chunks.processing == 0
        {
            return Ok(false);
        }
        let snapshot = self.store().snapshot(job).await?;
        Ok(snapshot.is_some_and(|snapshot| snapshot.root != snapshot.id))
    }

    /// Removes the ledger rows of a job; nothing is said where this process cannot reach them.
    async fn prune_ledger(&self, job: JobId) -> Result<Option<u64>> {
        let Some(snapshot) = self.store().snapshot(job).await? else { return Ok(None) };
        let definition = &snapshot.definition;
        let Ok(target) = self.target_of(definition) else { return Ok(None) };
        if self.outage(definition).is_some() {
            return Ok(None);
        }
        let failed = |error: ConnectorError| {
            let error = EngineError::from(error);
            self.connections_failed(definition, &error);
            error
        };
        let mut rows = target.prune(job).await.map_err(failed)?;
        // A load has its row beside its table.
        if let Some(load) = &definition.load {
            let Ok(place) = self.connection(&load.connection) else { return Ok(None) };
            self.prepare(&load.connection).await?;
            rows += place.prune(job).await.map_err(failed)?;
        }
        Ok(Some(rows))
    }
}
