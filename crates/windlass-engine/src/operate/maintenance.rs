//! Periodic maintenance of every worker process: its own heartbeat, runtime controls, expired leases,
//! cancelled jobs and idle child processes.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::heartbeat::Heartbeat;
use crate::operate::cancellation::{discard_output, end_cancelled};
use crate::operate::{lost_snapshots, process_identity};
use crate::quiet::{Pause, QUIET_POLL_INTERVAL};
use crate::shutdown::Shutdown;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_store::Capabilities;

/// Time between two rounds. An expired lease is noticed within this time.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(500);
/// How often the worker renews its row in the list of workers.
const WORKER_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How often it does this while the store has no open work. Less than the time after which a worker counts as
/// vanished.
const QUIET_WORKER_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// A child process without a batch for this time is closed.
const CHILD_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs maintenance rounds until shutdown.
pub(crate) async fn run(
    engine: Engine,
    by: Capabilities,
    slots: usize,
    heartbeat: Arc<Heartbeat>,
    shutdown: Shutdown,
) {
    let mut last_heartbeat = None::<Instant>;
    // Workers whose orphaned leases are logged.
    let mut logged = BTreeSet::new();
    let mut pause = Pause::new(&engine);
    let mut last_round = None::<Instant>;
    while !shutdown.requested() {
        let mut outcome = Ok(());
        let is_due =
            !engine.is_quiet() || last_round.is_none_or(|at| at.elapsed() >= QUIET_POLL_INTERVAL);
        if is_due {
            last_round = Some(Instant::now());
            outcome = round(&engine, &by).await;
        }
        if last_heartbeat.is_none_or(|at| at.elapsed() >= WORKER_HEARTBEAT_INTERVAL) {
            last_heartbeat = Some(Instant::now());
            let recorded = engine.store().heartbeat_worker(&by, slots as i64).await;
            outcome = outcome.and(recorded.map_err(EngineError::from));
            if is_due {
                let idle = heartbeat.is_idle();
                outcome = outcome.and(watch_peers(&engine, &by, idle, &mut logged).await);
            }
        }
        // In a task: a child that does not exit must not delay the next round.
        let steps = engine.clone();
        tokio::spawn(async move { steps.shared.steps.close_idle(CHILD_IDLE_TIMEOUT).await });
        if let Err(error) = outcome {
            tracing::warn!(%error, "maintenance failed; retrying");
        }
        tokio::select! {
            () = pause.wait_at_most(MAINTENANCE_INTERVAL, QUIET_WORKER_HEARTBEAT_INTERVAL) => {}
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
    lost_snapshots::handle(engine).await?;
    end_cancelled(engine, by).await?;
    discard_output(engine).await?;
    engine.refresh_quiet().await
}

/// Releases the leases of processes of this host that were killed. While this worker has no chunk, says
/// which leases of other processes it waits for.
async fn watch_peers(
    engine: &Engine,
    by: &Capabilities,
    idle: bool,
    logged: &mut BTreeSet<String>,
) -> Result<()> {
    let store = engine.store();
    if let Some(host) = process_identity::host() {
        for peer in store.silent_workers(&host).await? {
            if process_identity::has_ended(&peer.process) {
                let leases = store.expire_leases(&peer.name).await?;
                store.remove_worker(&peer.name).await?;
                tracing::warn!(
                    worker = peer.name,
                    leases,
                    "worker process has ended without handing its work back; its leases are released"
                );
            }
        }
    }
    let orphaned = if idle { store.orphaned_leases(by).await? } else { Vec::new() };
    logged.retain(|worker| orphaned.iter().any(|leases| leases.worker == *worker));
    for leases in orphaned {
        if logged.insert(leases.worker.clone()) {
            let until = leases.until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            tracing::warn!(
                worker = leases.worker,
                chunks = leases.chunks,
                until,
                "waiting for the leases of a worker that sends no heartbeat"
            );
        }
    }
    Ok(())
}
