//! Retention: deletes jobs, chunks, ledger rows, dead letters and alerts that are older than the
//! `retention` of their job type.
//!
//! A ledger row is deleted only when no chunk of its job can be leased again: the job has completed, was
//! cancelled, or was closed so that it cannot be retried. A worker with an old lease on such a chunk
//! finds no ledger row, and commits nothing.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::shutdown::Shutdown;
use serde::Serialize;
use std::collections::HashSet;
use std::time::Duration;
use windlass_connectors::ConnectorError;
use windlass_core::{JobId, JobStatus, Retention};
use windlass_store::OldJobs;

/// How often it prunes.
const PRUNE_INTERVAL: Duration = Duration::from_secs(600);
/// How long alerts are kept: longer than the window in which failures are detected, so that an alert is
/// not raised twice.
const ALERT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// Jobs fetched per query.
const JOBS_PER_QUERY: u32 = 100;

/// The number of rows deleted.
///
/// ```
/// use windlass_engine::Pruned;
///
/// assert_eq!(Pruned::default().jobs, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    /// Jobs, with all their rows.
    pub jobs: u64,
    /// Jobs that are kept and whose chunks and ledger rows were deleted.
    pub emptied: u64,
    /// Chunks.
    pub chunks: u64,
    /// Rows of the ledger, deferred items and emitted rows in the user's database.
    pub ledger_rows: u64,
    /// Dead letters that were deleted before their job.
    pub dead_letters: u64,
    /// Alerts.
    pub alerts: u64,
}

/// Prunes periodically until shutdown.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    while !shutdown.requested() {
        tokio::select! {
            pruned = engine.prune(None) => match pruned {
                Ok(pruned) if pruned == Pruned::default() => {}
                Ok(pruned) => tracing::info!(?pruned, "pruned expired jobs"),
                Err(error) => tracing::warn!(%error, "pruning failed; retrying in {PRUNE_INTERVAL:?}"),
            },
            // Safe to cancel: a job that is pruned partly is continued next time.
            () = shutdown.wait() => {}
        }
        tokio::select! {
            () = tokio::time::sleep(PRUNE_INTERVAL) => engine.renew_generations().await,
            () = shutdown.wait() => {}
        }
    }
}

impl Engine {
    /// Deletes what is older than the retention of its job type, or than `all` for every job type.
    ///
    /// # Errors
    /// The store fails, or a database whose ledger rows are to be deleted.
    pub async fn prune(&self, all: Option<&Retention>) -> Result<Pruned> {
        let alerts = self.store().remove_alerts(ALERT_RETENTION).await?;
        let (mut pruned, mut result) = (Pruned { alerts, ..Pruned::default() }, Ok(()));
        for job_type in self.store().job_types().await? {
            let defined = self.config().jobs.get(&job_type).map(|job_type| &job_type.retention);
            let retention = all.or(defined).cloned().unwrap_or_default();
            // An unavailable database must not prevent pruning other job types.
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
        let (store, connections) = (self.store(), self.leasable_connections());
        if let Some(age) = retention.dead_letters {
            pruned.dead_letters += store.remove_dead_letters(job_type, age).await?;
        }
        let old = |age| OldJobs {
            job_type: job_type.to_owned(),
            age,
            connections: connections.clone(),
            limit: JOBS_PER_QUERY,
        };
        let (mut result, mut tried) = (Ok(()), HashSet::new());
        loop {
            let expired = store.expired(&old(retention.jobs)).await?;
            let emptied = store.prunable(&old(retention.chunks)).await?;
            let before = tried.len();
            for (job, whole) in [(expired, true), (emptied, false)]
                .into_iter()
                .flat_map(|(jobs, whole)| jobs.into_iter().map(move |job| (job, whole)))
            {
                // Once per job: a job that cannot be pruned must not block the rest.
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

    /// Prunes one job: completely if `age` is given and it ended longer ago, else only its chunks.
    async fn prune_job(
        &self,
        job: JobId,
        age: Option<Duration>,
        pruned: &mut Pruned,
    ) -> Result<()> {
        let store = self.store();
        if age.is_some() && self.is_failed_redrive(job).await? {
            // Its ledger holds which dead letters it has settled. Cancelling records that; the job is
            // pruned when the retention has passed since then.
            self.cancel(job).await?;
            return Ok(());
        }
        if let Some(age) = age
            && !store.close_job(job, age).await?
        {
            return Ok(());
        }
        if !self.can_prune_ledger(job).await? {
            return Ok(());
        }
        // First, so that an audit between the two does not miss the ledger.
        store.remove_segments(job).await?;
        let Some(rows) = self.prune_ledger(job).await? else { return Ok(()) };
        pruned.ledger_rows += rows;
        match age {
            Some(_) => {
                pruned.chunks += store.remove_job(job).await?;
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

    /// Whether the databases with the ledger of a job are available to this process.
    async fn can_prune_ledger(&self, job: JobId) -> Result<bool> {
        let Some(snapshot) = self.store().snapshot(job).await? else { return Ok(false) };
        let definition = &snapshot.definition;
        let load = definition.load.as_ref();
        Ok(self.target_of(definition).is_ok()
            && self.outage(definition).is_none()
            && load.is_none_or(|load| self.connection(&load.connection).is_ok()))
    }

    /// Deletes the ledger rows of a job; `None` if this process cannot reach them.
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
        // The ledger row of a load is beside its table.
        if let Some(load) = &definition.load {
            let Ok(place) = self.connection(&load.connection) else { return Ok(None) };
            self.prepare(&load.connection).await?;
            rows += place.prune(job).await.map_err(failed)?;
        }
        Ok(Some(rows))
    }
}
