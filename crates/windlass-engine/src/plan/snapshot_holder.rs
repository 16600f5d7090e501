//! Holds the read snapshot of a job until its last chunk is read.

use crate::Result;
use crate::engine::Engine;
use crate::shutdown::Shutdown;
use std::time::{Duration, Instant};
use windlass_connectors::HeldSnapshot;
use windlass_core::JobId;
use windlass_drivers::{Error, ErrorClass};
use windlass_store::StoreError;

/// The shortest and the longest time between two checks of the snapshot.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

/// The least time between two checks.
const PAUSE: Duration = Duration::from_millis(100);

/// Which snapshot is held, and how long the store regards it as held without a renewal.
#[derive(Clone, Copy)]
pub(super) struct HeldFor {
    pub(super) job: JobId,
    pub(super) number: i64,
    pub(super) lease: Duration,
}

/// Holds a snapshot until the job does not need it any more, it is lost, or the process shuts down. Its lease is
/// renewed only after the database has confirmed that the snapshot exists.
pub(super) async fn hold(
    engine: Engine,
    held: Box<dyn HeldSnapshot>,
    held_for: HeldFor,
    shutdown: Shutdown,
) {
    let HeldFor { job, lease, .. } = held_for;
    let interval = (lease / 3).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
    let mut changes = engine.store().subscribe();
    let mut renewed_at = Instant::now();
    while !shutdown.requested() {
        // The end of the last chunk is a change, so that the snapshot does not outlive it.
        tokio::select! {
            () = changes.changed(interval) => {}
            () = shutdown.wait() => continue,
        }
        if let Err(error) = held.check().await {
            tracing::warn!(%job, %error, "the read snapshot of the job is lost");
            return expire(&engine, held_for).await;
        }
        match renew(&engine, held_for).await {
            Ok(true) => renewed_at = Instant::now(),
            Ok(false) => {
                held.release().await;
                return release(&engine, held_for).await;
            }
            // Behind a pooler with few connections, the store may wait for the one that holds the snapshot.
            Err(error) if renewed_at.elapsed() > lease => {
                tracing::warn!(%job, %error, "the read snapshot of the job is given up, since its lease has expired");
                break;
            }
            Err(error) => tracing::warn!(%job, %error, "failed to renew the read snapshot"),
        }
        // A store with much work has many changes.
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = shutdown.wait() => {}
        }
    }
    held.release().await;
    match renew(&engine, held_for).await {
        Ok(false) => release(&engine, held_for).await,
        _ => expire(&engine, held_for).await,
    }
}

/// Renews the lease. Returns false if the snapshot is not needed any more or was reported as lost.
async fn renew(engine: &Engine, held_for: HeldFor) -> Result<bool> {
    let HeldFor { job, number, lease } = held_for;
    let renewed = engine.store().renew_read_snapshot(job, number, lease);
    match tokio::time::timeout(lease, renewed).await {
        Ok(renewed) => Ok(renewed?),
        Err(_) => {
            let message = format!("the store has not answered for {lease:?}");
            Err(StoreError::from(Error::new(ErrorClass::Connection, message)).into())
        }
    }
}

/// Records the end of a snapshot that is not needed any more.
async fn release(engine: &Engine, held_for: HeldFor) {
    let HeldFor { job, number, .. } = held_for;
    if let Err(error) = engine.store().release_read_snapshot(job, number).await {
        tracing::debug!(%job, %error, "failed to record that the read snapshot has ended");
    }
}

/// Records the loss, so that the job is planned again at once and not when the lease expires.
async fn expire(engine: &Engine, held_for: HeldFor) {
    let HeldFor { job, number, .. } = held_for;
    if let Err(error) = engine.store().expire_read_snapshot(job, number).await {
        tracing::debug!(%job, %error, "failed to record that the read snapshot is lost; its lease expires");
    }
}
