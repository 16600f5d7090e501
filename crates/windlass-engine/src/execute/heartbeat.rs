//! The heartbeat: keeps every lease of the process alive with one statement a beat.

use crate::execute::worker::Shutdown;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use windlass_core::ChunkId;
use windlass_store::{Lease, LeaseRenewal, LeaseStatus, Progress, SegmentLease, Store};

/// All leases this process holds.
#[derive(Default)]
pub(crate) struct Heartbeat {
    chunks: Mutex<HashMap<ChunkId, Arc<LeaseState>>>,
    segments: Mutex<HashMap<SegmentLease, ()>>,
    shutdown: Option<Shutdown>,
}

/// One chunk's lease: what it reports, and how it stands.
pub(crate) struct LeaseState {
    pub(crate) lease: Lease,
    length: Duration,
    progress: Mutex<Option<Progress>>,
    standing: watch::Sender<LeaseStatus>,
}

impl LeaseState {
    /// Reports how far the chunk is, with the next beat.
    pub(crate) fn report(&self, progress: Progress) {
        *locked(&self.progress) = Some(progress);
    }

    /// How far the chunk is.
    pub(crate) fn progress(&self) -> Progress {
        locked(&self.progress).clone().unwrap_or_default()
    }

    /// How the lease stands, as of the last beat.
    pub(crate) fn standing(&self) -> LeaseStatus {
        *self.standing.borrow()
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        let mut standing = self.standing.subscribe();
        // The sender lives in this very pulse, so waiting cannot end by its being dropped.
        let _ = standing.wait_for(|standing| *standing == LeaseStatus::Lost).await;
    }

    pub(crate) fn stands(&self, standing: LeaseStatus) {
        self.standing.send_replace(standing);
    }
}

impl Heartbeat {
    /// The heartbeat of a worker.
    pub(crate) fn new(shutdown: Shutdown) -> Heartbeat {
        Heartbeat { shutdown: Some(shutdown), ..Heartbeat::default() }
    }

    /// Whether the worker is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.as_ref().is_some_and(Shutdown::requested)
    }

    /// Begins to keep a chunk's lease of this length.
    pub(crate) fn keep(&self, lease: Lease, length: Duration) -> Arc<LeaseState> {
        let standing = watch::Sender::new(LeaseStatus::Held);
        let pulse = Arc::new(LeaseState { lease, length, progress: Mutex::default(), standing });
        locked(&self.chunks).insert(lease.chunk, pulse.clone());
        pulse
    }

    /// Stops keeping a chunk's lease, unless it was claimed anew meanwhile.
    pub(crate) fn forget(&self, lease: Lease) {
        let mut chunks = locked(&self.chunks);
        if chunks.get(&lease.chunk).is_some_and(|pulse| pulse.lease == lease) {
            chunks.remove(&lease.chunk);
        }
    }

    /// Keeps a segment's lease for as long as the guard lives.
    pub(crate) fn keep_segment(self: &Arc<Self>, lease: SegmentLease) -> SegmentGuard {
        locked(&self.segments).insert(lease, ());
        SegmentGuard { heartbeat: self.clone(), lease }
    }

    /// Beats until shutdown is complete, three times in the shortest lease.
    pub(crate) async fn run(self: Arc<Self>, store: Arc<dyn Store>, shutdown: Shutdown) {
        while !shutdown.complete() {
            tokio::select! {
                () = tokio::time::sleep(self.interval()) => {}
                () = shutdown.wait_complete() => break,
            }
            if let Err(error) = self.beat(store.as_ref()).await {
                tracing::warn!(%error, "a heartbeat failed; leases run out if this goes on");
            }
        }
    }

    /// Extends all leases, and learns how each chunk stands.
    pub(crate) async fn beat(&self, store: &dyn Store) -> windlass_store::Result<()> {
        let pulses: Vec<Arc<LeaseState>> = locked(&self.chunks).values().cloned().collect();
        let segments: Vec<SegmentLease> = locked(&self.segments).keys().copied().collect();
        if pulses.is_empty() && segments.is_empty() {
            return Ok(());
        }
        let beat = |pulse: &Arc<LeaseState>| LeaseRenewal {
            lease: pulse.lease,
            progress: locked(&pulse.progress).clone(),
        };
        let beats: Vec<LeaseRenewal> = pulses.iter().map(beat).collect();
        let standings = store.heartbeat(&beats, &segments).await?;
        for (pulse, standing) in pulses.iter().zip(standings) {
            pulse.stands(standing);
        }
        Ok(())
    }

    fn interval(&self) -> Duration {
        let shortest = locked(&self.chunks).values().map(|pulse| pulse.length).min();
        let lease = shortest.unwrap_or(Duration::from_secs(3));
        (lease / 3).clamp(Duration::from_millis(30), Duration::from_secs(1))
    }
}

/// Keeps a segment's lease alive.
pub(crate) struct SegmentGuard {
    heartbeat: Arc<Heartbeat>,
    lease: SegmentLease,
}

impl Drop for SegmentGuard {
    fn drop(&mut self) {
        locked(&self.heartbeat.segments).remove(&self.lease);
    }
}

/// These maps hold plain values, which a panic elsewhere cannot leave half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
