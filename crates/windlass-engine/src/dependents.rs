//! Dependents: submits the jobs whose parents have ended.
//!
//! The parent that ends last leaves a trigger in its own transaction, with the id of the job to be.
//! To submit it goes through the door like every request, and may be repeated: the same id is the
//! same job.

use crate::engine::Engine;
use crate::seal::Keyring;
use crate::worker::Shutdown;
use crate::{EngineError, Result};
use std::time::Duration;
use windlass_core::Identity;
use windlass_store::{StoreError, Submitted, Trigger};

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
        if let Err(error) = engine.submit_triggered().await {
            tracing::warn!(%error, "dependent jobs cannot be submitted; trying again");
        }
        if last {
            return;
        }
        tokio::select! {
            () = async {
                tokio::time::sleep(SHORTEST).await;
                engine.store().changed(LONGEST).await;
            } => {}
            () = shutdown.wait() => {}
        }
    }
}

impl Engine {
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
                            tracing::warn!(job_type = trigger.request.job_type, error,
                                "cannot be submitted, though its parents have ended");
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
                Some(Keyring::from_env()?.open(sealed, trigger.root)?)
            }
            _ => None,
        };
        let identity = Identity { token, sealed_token: None, ..trigger.identity.clone() };
        self.submit_as(trigger.id, trigger.request.clone(), identity).await
    }
}
