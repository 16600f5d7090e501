//! The household of every worker process: it says that it is there, hears what operators say, and
//! looks after leases that ran out, chunks of cancelled jobs, ledger rows and idle children.

use crate::canceller::end_cancelled;
use crate::engine::Engine;
use crate::worker::Shutdown;
use crate::{EngineError, Result};
use std::time::{Duration, Instant};
use windlass_store::Capabilities;

/// How often leases are looked after. A lost lease is noticed within this time.
const ROUND: Duration = Duration::from_millis(500);
/// How often finished jobs are looked through for ledger rows to prune.
const PRUNING: Duration = Duration::from_secs(600);
/// How long the ledger rows of a completed job are kept beside the user's data.
const LEDGER_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often the process says that it is there.
const SAYING: Duration = Duration::from_secs(1);
/// A child process that has had no batch for so long is ended.
const UNUSED: Duration = Duration::from_secs(60);

/// Keeps house until shutdown.
pub(crate) async fn run(engine: Engine, by: Capabilities, slots: usize, shutdown: Shutdown) {
    let (mut pruned, mut said) = (None::<Instant>, None::<Instant>);
    while !shutdown.requested() {
        let mut round = round(&engine, &by).await;
        if said.is_none_or(|at| at.elapsed() >= SAYING) {
            said = Some(Instant::now());
            let saying = engine.store().beat_worker(&by.worker, slots as i64).await;
            round = round.and(saying.map_err(EngineError::from));
        }
        if pruned.is_none_or(|at| at.elapsed() > PRUNING) {
            pruned = Some(Instant::now());
            round = round.and(engine.prune(LEDGER_AGE).await.map(drop));
        }
        // Beside the rest: a child that does not end when it should must not hold up the others.
        let resting = engine.clone();
        tokio::spawn(async move { resting.shared.steps.rest(UNUSED).await });
        if let Err(error) = round {
            tracing::warn!(%error, "housekeeping failed; trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(ROUND) => {}
            () = shutdown.wait() => {}
        }
    }
    // Others see it as vanished after a while where this fails.
    let _ = engine.store().forget_worker(&by.worker).await;
}

async fn round(engine: &Engine, by: &Capabilities) -> Result<()> {
    engine.hear_controls().await?;
    let rescued = engine.store().rescue().await?;
    if rescued > 0 {
        tracing::warn!(rescued, "leases ran out; their chunks go on elsewhere");
    }
    end_cancelled(engine, by).await.map(drop)
}

impl Engine {
    /// Removes the ledger rows of jobs that completed longer ago than this; says of how many
    /// jobs. Only completed jobs: every other one may still need its ledger.
    pub async fn prune(&self, age: Duration) -> Result<u64> {
        let mut jobs = 0;
        for job in self.store().prunable(age, 100).await? {
            let Some(pinned) = self.store().pinned(job).await? else { continue };
            // Another process may have the connection that this one lacks.
            let Ok(connection) = self.connection(&pinned.definition.source.connection) else {
                continue;
            };
            connection.prune(job).await?;
            self.store().pruned(job).await?;
            jobs += 1;
        }
        Ok(jobs)
    }
}
