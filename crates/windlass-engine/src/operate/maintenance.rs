//! The household of every worker process: it says that it is there, hears what operators say, and
//! looks after leases that ran out, chunks and output of cancelled jobs,
//! and idle children.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::operate::cancellation::{discard_output, end_cancelled};
use crate::shutdown::Shutdown;
use std::time::{Duration, Instant};
use windlass_store::Capabilities;

/// How often leases are looked after. A lost lease is noticed within this time.
const ROUND: Duration = Duration::from_millis(500);
/// How often the process says that it is there.
const SAYING: Duration = Duration::from_secs(1);
/// A child process that has had no batch for so long is ended.
const UNUSED: Duration = Duration::from_secs(60);

/// Keeps house until shutdown.
pub(crate) async fn run(engine: Engine, by: Capabilities, slots: usize, shutdown: Shutdown) {
    let mut said = None::<Instant>;
    while !shutdown.requested() {
        let mut round = round(&engine, &by).await;
        if said.is_none_or(|at| at.elapsed() >= SAYING) {
            said = Some(Instant::now());
            let saying = engine.store().heartbeat_worker(&by, slots as i64).await;
            round = round.and(saying.map_err(EngineError::from));
        }
        // Beside the rest: a child that does not end when it should must not hold up the others.
        let resting = engine.clone();
        tokio::spawn(async move { resting.shared.steps.close_idle(UNUSED).await });
        if let Err(error) = round {
            tracing::warn!(%error, "housekeeping failed; trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(ROUND) => {}
            () = shutdown.wait() => {}
        }
    }
    // Others see it as vanished after a while where this fails.
    let _ = engine.store().remove_worker(&by.worker).await;
}

async fn round(engine: &Engine, by: &Capabilities) -> Result<()> {
    engine.refresh_controls().await?;
    let rescued = engine.store().rescue().await?;
    if rescued > 0 {
        tracing::warn!(rescued, "leases ran out; their chunks go on elsewhere");
    }
    end_cancelled(engine, by).await?;
    discard_output(engine).await
}
