//! The heartbeat: renews every lease of the process, in one statement each for chunks and segments.

use crate::shutdown::Shutdown;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use windlass_core::{ChunkId, JobId};
use windlass_store::{Lease, LeaseRenewal, LeaseStatus, Progress, SegmentLease, Store};

/// The leases of this process.
#[derive(Default)]
pub(crate) struct Heartbeat {
    chunks: Mutex<HashMap<ChunkId, Arc<LeaseState>>>,
    segments: Mutex<HashSet<SegmentLease>>,
    shutdown: Option<Shutdown>,
}

/// The lease of one chunk: its progress, which the next heartbeat stores, and its status.
pub(crate) struct LeaseState {
    pub(crate) lease: Lease,
    length: Duration,
    progress: Mutex<Option<Progress>>,
    in_slot: AtomicBool,
    status: watch::Sender<LeaseStatus>,
}

impl LeaseState {
    /// Records the chunk's progress. The next heartbeat stores it.
    pub(crate) fn record_progress(&self, progress: Progress) {
        *self.progress.lock() = Some(progress);
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.lock().clone().unwrap_or_default()
    }

    /// Says whether the chunk is in a slot. The next heartbeat renews its lease for `chunk.lease`, or for
    /// less while it waits.
    pub(crate) fn set_in_slot(&self, in_slot: bool) {
        self.in_slot.store(in_slot, Ordering::Relaxed);
    }

    /// The status as of the last heartbeat.
    pub(crate) fn status(&self) -> LeaseStatus {
        *self.status.borrow()
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        // The sender is a field of this value, so it is not dropped during the wait.
        let _ = self.status.subscribe().wait_for(|status| *status == LeaseStatus::Lost).await;
    }

    fn renewal(&self) -> LeaseRenewal {
        let in_slot = self.in_slot.load(Ordering::Relaxed);
        LeaseRenewal { lease: self.lease, progress: self.progress.lock().clone(), in_slot }
    }
}

/// The interval while there are no leases.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(30);
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);

impl Heartbeat {
    /// The heartbeat of a worker.
    pub(crate) fn new(shutdown: Shutdown) -> Heartbeat {
        Heartbeat { shutdown: Some(shutdown), ..Heartbeat::default() }
    }

    /// Whether the worker shuts down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.as_ref().is_some_and(Shutdown::requested)
    }

    /// Starts to renew a chunk's lease of this length.
    pub(crate) fn keep(&self, lease: Lease, length: Duration) -> Arc<LeaseState> {
        let status = watch::Sender::new(LeaseStatus::Held);
        let state = Arc::new(LeaseState {
            lease,
            length,
            progress: Mutex::default(),
            in_slot: AtomicBool::new(false),
            status,
        });
        self.chunks.lock().insert(lease.chunk, state.clone());
        state
    }

    /// Stops renewing a chunk's lease, unless this process has leased the chunk again since.
    pub(crate) fn forget(&self, lease: Lease) {
        let mut chunks = self.chunks.lock();
        if chunks.get(&lease.chunk).is_some_and(|state| state.lease == lease) {
            chunks.remove(&lease.chunk);
        }
    }

    /// Whether this process has leased no chunk.
    pub(crate) fn is_idle(&self) -> bool {
        self.chunks.lock().is_empty()
    }

    /// Whether this process has leased a chunk of the job.
    pub(crate) fn has_chunk_of(&self, job: JobId) -> bool {
        self.chunks.lock().keys().any(|chunk| chunk.job == job)
    }

    /// Renews a segment's lease until the guard is dropped.
    pub(crate) fn keep_segment(self: &Arc<Self>, lease: SegmentLease) -> SegmentGuard {
        self.segments.lock().insert(lease);
        SegmentGuard { heartbeat: self.clone(), lease }
    }

    /// Renews the leases until shutdown is complete, three times within the shortest one.
    pub(crate) async fn run(self: Arc<Self>, store: Arc<dyn Store>, shutdown: Shutdown) {
        while !shutdown.complete() {
            tokio::select! {
                () = tokio::time::sleep(self.interval()) => {}
                () = shutdown.wait_complete() => break,
            }
            if let Err(error) = self.beat(store.as_ref()).await {
                tracing::warn!(%error, "heartbeat failed; leases will expire if this continues");
            }
        }
    }

    /// Renews all leases once and learns their status.
    pub(crate) async fn beat(&self, store: &dyn Store) -> windlass_store::Result<()> {
        let chunks: Vec<Arc<LeaseState>> = self.chunks.lock().values().cloned().collect();
        let segments: Vec<SegmentLease> = self.segments.lock().iter().copied().collect();
        if chunks.is_empty() && segments.is_empty() {
            return Ok(());
        }
        let renewals: Vec<LeaseRenewal> = chunks.iter().map(|state| state.renewal()).collect();
        let statuses = store.heartbeat(&renewals, &segments).await?;
        for (state, status) in chunks.iter().zip(statuses) {
            state.status.send_replace(status);
        }
        Ok(())
    }

    fn interval(&self) -> Duration {
        let shortest = self.chunks.lock().values().map(|state| state.length).min();
        shortest
            .map_or(IDLE_INTERVAL, |lease| (lease / 3).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL))
    }
}

/// Renews a segment's lease while it lives.
pub(crate) struct SegmentGuard {
    heartbeat: Arc<Heartbeat>,
    lease: SegmentLease,
}

impl Drop for SegmentGuard {
    fn drop(&mut self) {
        self.heartbeat.segments.lock().remove(&self.lease);
    }
}
