//! Periodic maintenance of every worker process: its own heartbeat, runtime controls, expired leases,
//! cancelled jobs and idle child processes.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::operate::cancellation::{discard_output, end_cancelled};
use crate::shutdown::Shutdown;
use std::time::{Duration, Instant};
use windlass_store::Capabilities;

/// Time between two rounds. An expired lease is noticed within this time.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(500);
/// How often the worker renews its row in the list of workers.
const WORKER_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A child process without a batch for this time is closed.
const CHILD_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs maintenance rounds until shutdown.
pub(crate) async fn run(engine: Engine, by: Capabilities, slots: usize, shutdown: Shutdown) {
    let mut last_heartbeat = None::<Instant>;
    while !shutdown.requested() {
        let mut round = round(&engine, &by).await;
        if last_heartbeat.is_none_or(|at| at.elapsed() >= WORKER_HEARTBEAT_INTERVAL) {
            last_heartbeat = Some(Instant::now());
            let heartbeat = engine.store().heartbeat_worker(&by, slots as i64).await;
            round = round.and(heartbeat.map_err(EngineError::from));
        }
        // In a task: a child that does not exit must not delay the next round.
        let steps = engine.clone();
        tokio::spawn(async move { steps.shared.steps.close_idle(CHILD_IDLE_TIMEOUT).await });
        if let Err(error) = round {
            tracing::warn!(%error, "maintenance failed; retrying");
        }
        tokio::select! {
            () = tokio::time::sleep(MAINTENANCE_INTERVAL) => {}
            () = shutdown.wait() => {}
        }
    }
    // If this fails, the worker disappears from listings when its row expires.
    let _ = engine.store().remove_worker(&by.worker).await;
}

async fn round(engine: &Engine, by: &Capabilities) -> Result<()> {
    engine.refresh_controls().await?;
    let rescued = engine.store().rescue().await?;
    if rescued > 0 {
        tracing::warn!(rescued, "leases expired; their chunks and segments can be leased again");
    }
    end_cancelled(engine, by).await?;
    discard_output(engine).await
}
