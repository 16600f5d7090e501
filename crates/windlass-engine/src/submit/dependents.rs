//! Submits dependent jobs after their parents have ended.
//!
//! The parent that ends last inserts a trigger in the transaction that ends it. The trigger holds the
//! id of the job to submit. Submitting is idempotent: the same id is the same job, so a trigger may
//! be processed twice.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::shutdown::Shutdown;
use crate::submit::token_vault::TokenVault;
use serde::Serialize;
use std::time::Duration;
use windlass_core::{Dependency, Identity, JobId, Request};
use windlass_store::{
    JoinPointRow, LinkedJob, StoreError, Submitted, Subscription, Topics, Trigger,
};

/// How often triggers are read when no change notification arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two reads: a busy store notifies many times a second.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Triggers leased at once.
const LEASE_BATCH: u32 = 100;
/// After this time another process may lease a trigger that this process has not finished.
const TRIGGER_LEASE: Duration = Duration::from_secs(30);
/// Maximum backoff for a trigger whose request was rejected. Retrying makes sense because a new
/// configuration file can make the request valid.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(60);
/// Rows listed at most per kind.
const MAX_LISTED: u32 = 1000;

/// Submits due dependents until shutdown, and once more after it: the job that just ended may be a
/// parent.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    let mut changes = engine.store().subscribe_to(Topics::REST);
    loop {
        let last = shutdown.requested();
        // Not cancelled by shutdown: leased triggers would stay leased until `TRIGGER_LEASE` expires.
        engine.submit_triggered_or_log().await;
        if last {
            return;
        }
        tokio::select! {
            () = engine.wait_for_triggers(&mut changes) => {}
            () = shutdown.wait() => {}
        }
    }
}

/// The dependency rules and their state.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// The rules in the configuration.
    pub rules: Vec<Dependency>,
    /// Join points where some parents have completed and others are missing.
    pub waiting: Vec<JoinPointRow>,
    /// Jobs whose parents have completed and that are not submitted yet.
    pub due: Vec<DueJob>,
}

/// A dependent job whose parents have completed and that is not submitted yet.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DueJob {
    /// The id it will have.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub id: JobId,
    /// Its request.
    pub request: Request,
    /// Why the last attempt to submit it was rejected. It is retried.
    pub error: Option<String>,
}

impl Engine {
    /// The dependency rules, incomplete join points, and dependents that are due.
    ///
    /// # Errors
    /// The store fails.
    pub async fn dependencies(&self) -> Result<Dependencies> {
        let due = self.store().triggers(MAX_LISTED).await?.into_iter();
        Ok(Dependencies {
            rules: self.config().dependencies.clone(),
            waiting: self.store().join_points(MAX_LISTED).await?,
            due: due
                .map(|Trigger { id, request, error, .. }| DueJob { id, request, error })
                .collect(),
        })
    }

    /// A job with its ancestors and descendants in the dependency graph, oldest first.
    ///
    /// # Errors
    /// The store fails.
    pub async fn graph(&self, job: JobId) -> Result<Vec<LinkedJob>> {
        Ok(self.store().dependency_graph(job, MAX_LISTED).await?)
    }

    /// Submits dependent jobs as soon as their parents have ended. Runs until the future is dropped.
    pub async fn run_dependents(&self) {
        let mut changes = self.store().subscribe_to(Topics::REST);
        loop {
            self.submit_triggered_or_log().await;
            self.wait_for_triggers(&mut changes).await;
        }
    }

    async fn wait_for_triggers(&self, changes: &mut Subscription) {
        tokio::time::sleep(MIN_POLL_INTERVAL).await;
        changes.changed(self.poll_interval(POLL_INTERVAL)).await;
    }

    async fn submit_triggered_or_log(&self) {
        if let Err(error) = self.submit_triggered().await {
            tracing::warn!(%error, "failed to submit dependent jobs; retrying");
        }
    }

    /// Submits the jobs whose parents have ended and returns their number. A rejected request is
    /// recorded with its error and retried with backoff.
    ///
    /// # Errors
    /// The store fails.
    pub async fn submit_triggered(&self) -> Result<u64> {
        let mut submitted = 0;
        loop {
            let triggers = self.store().lease_triggers(LEASE_BATCH, TRIGGER_LEASE).await?;
            if triggers.is_empty() {
                return Ok(submitted);
            }
            for trigger in triggers {
                match self.submit_trigger(&trigger).await {
                    Ok(job) => {
                        self.store().complete_trigger(trigger.id).await?;
                        tracing::info!(job = %job.id(), job_type = trigger.request.job_type,
                            "submitted dependent job: all parents have ended");
                        submitted += 1;
                    }
                    // The store is unavailable, so nothing is known about the request.
                    Err(error @ EngineError::Store(StoreError::Database(_))) => return Err(error),
                    Err(error) => {
                        let error = error.to_string();
                        if trigger.error.as_ref() != Some(&error) {
                            tracing::warn!(
                                job_type = trigger.request.job_type,
                                error,
                                "dependent job rejected although its parents have ended; retrying"
                            );
                        }
                        let backoff = Duration::from_secs(1 << trigger.attempts.clamp(0, 6));
                        let wait = backoff.min(MAX_RETRY_WAIT);
                        self.store().fail_trigger(trigger.id, &error, wait).await?;
                    }
                }
            }
        }
    }

    /// The parents that have not been pruned. All of them have ended, and their statuses are judged already.
    async fn remaining_parents(&self, after: Option<Vec<JobId>>) -> Result<Option<Vec<JobId>>> {
        let mut parents = Vec::new();
        for parent in after.into_iter().flatten() {
            if self.store().status(parent).await?.is_some() {
                parents.push(parent);
            }
        }
        Ok(Some(parents).filter(|parents| !parents.is_empty()))
    }

    async fn submit_trigger(&self, trigger: &Trigger) -> Result<Submitted> {
        let job_type = self.config().job_type(&trigger.request.job_type)?;
        // A token is sealed for one job: open the parent's, so that submitting seals it for this job.
        let token = match &trigger.identity.sealed_token {
            Some(sealed) if job_type.step.kind.forwards_token() => {
                Some(TokenVault::from_env()?.open(sealed, trigger.root)?)
            }
            _ => None,
        };
        let identity = Identity { token, sealed_token: None, ..trigger.identity.clone() };
        let mut request = trigger.request.clone();
        // The parents may have params that are of no concern to this job.
        if let Some(known) = self.config().known_params(job_type) {
            request.params.retain(|name, _| known.contains(name));
        }
        request.after = self.remaining_parents(request.after).await?;
        self.submit_as(trigger.id, request, identity).await
    }
}
