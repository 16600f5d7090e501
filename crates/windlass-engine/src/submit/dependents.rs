//! Dependents: submits the jobs whose parents have ended.
//!
//! The parent that ends last leaves a trigger in its own transaction, with the id of the job to be.
//! To submit it goes through the door like every request, and may be repeated: the same id is the
//! same job.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::worker::Shutdown;
use crate::submit::token_vault::TokenVault;
use serde::Serialize;
use std::time::Duration;
use windlass_core::{Dependency, Identity, JobId, Request};
use windlass_store::{JoinPointRow, Linked, StoreError, Submitted, Trigger};

/// The longest time between two looks, where nobody says that something has changed.
const LONGEST: Duration = Duration::from_secs(1);
/// The shortest: a store that is busy changes many times in a moment.
const SHORTEST: Duration = Duration::from_millis(50);
/// How many are submitted before the next look.
const BATCH: u32 = 100;
/// When another process tries those that this one took and did not get done.
const LEASE: Duration = Duration::from_secs(30);
/// A refused one is tried again after a second, then less and less often: what it needs may come
/// with a new file.
const MOST: Duration = Duration::from_secs(60);

/// Submits what is due, until shutdown and once more: the job that just ended may be a parent.
pub(crate) async fn run(engine: Engine, shutdown: Shutdown) {
    loop {
        let last = shutdown.requested();
        // Not given up half-way: what it has taken would be left to somebody else for a while.
        engine.try_triggered().await;
        if last {
            return;
        }
        tokio::select! {
            () = engine.next_triggers() => {}
            () = shutdown.wait() => {}
        }
    }
}

/// The rules, and what they wait for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// The rules of the configuration.
    pub rules: Vec<Dependency>,
    /// Where some parents have ended and others are missing.
    pub waiting: Vec<JoinPointRow>,
    /// Jobs whose parents have ended and that are not submitted yet, with the reason.
    pub due: Vec<Due>,
}

/// A job that is not submitted yet.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Due {
    /// The id it will have.
    #[cfg_attr(feature = "openapi", schema(value_type = Uuid))]
    pub id: JobId,
    /// Its request.
    pub request: Request,
    /// Why it was refused; it is tried again.
    pub error: Option<String>,
}

/// The most that is shown of each.
const SHOWN: u32 = 1000;

impl Engine {
    /// The rules, and what they wait for.
    pub async fn dependencies(&self) -> Result<Dependencies> {
        let due = self.store().triggers(SHOWN).await?.into_iter();
        Ok(Dependencies {
            rules: self.config().dependencies.clone(),
            waiting: self.store().join_points(SHOWN).await?,
            due: due.map(|Trigger { id, request, error, .. }| Due { id, request, error }).collect(),
        })
    }

    /// A job with all it came after and all that comes after it, the oldest first.
    pub async fn graph(&self, job: JobId) -> Result<Vec<Linked>> {
        Ok(self.store().graph(job, SHOWN).await?)
    }

    /// Submits jobs as soon as their parents have ended, for as long as it is polled.
    pub async fn keep_dependents(&self) {
        loop {
            self.try_triggered().await;
            self.next_triggers().await;
        }
    }

    async fn next_triggers(&self) {
        tokio::time::sleep(SHORTEST).await;
        self.store().changed(LONGEST).await;
    }

    async fn try_triggered(&self) {
        if let Err(error) = self.submit_triggered().await {
            tracing::warn!(%error, "dependent jobs cannot be submitted; trying again");
        }
    }

    /// Submits the jobs whose parents have ended; says how many. One that is refused says why and
    /// is tried again.
    pub async fn submit_triggered(&self) -> Result<u64> {
        let mut submitted = 0;
        loop {
            let triggers = self.store().claim_triggers(BATCH, LEASE).await?;
            if triggers.is_empty() {
                return Ok(submitted);
            }
            for trigger in triggers {
                match self.submit_trigger(&trigger).await {
                    Ok(job) => {
                        self.store().triggered(trigger.id).await?;
                        tracing::info!(job = %job.id(), job_type = trigger.request.job_type,
                            "submitted, since its parents have ended");
                        submitted += 1;
                    }
                    // The store is away: that says nothing of the job.
                    Err(error @ EngineError::Store(StoreError::Database(_))) => return Err(error),
                    Err(error) => {
                        let error = error.to_string();
                        if trigger.error.as_ref() != Some(&error) {
                            tracing::warn!(
                                job_type = trigger.request.job_type,
                                error,
                                "cannot be submitted, though its parents have ended"
                            );
                        }
                        let wait = Duration::from_secs(1 << trigger.attempts.clamp(0, 6)).min(MOST);
                        self.store().fail_trigger(trigger.id, &error, wait).await?;
                    }
                }
            }
        }
    }

    async fn submit_trigger(&self, trigger: &Trigger) -> Result<Submitted> {
        let job_type = self.config().job_type(&trigger.request.job_type)?;
        // A token is sealed for the job it came with.
        let token = match &trigger.identity.sealed_token {
            Some(sealed) if job_type.step.kind.forwards_token() => {
                Some(TokenVault::from_env()?.open(sealed, trigger.root)?)
            }
            _ => None,
        };
        let identity = Identity { token, sealed_token: None, ..trigger.identity.clone() };
        self.submit_as(trigger.id, trigger.request.clone(), identity).await
    }
}
