//! A claimed chunk as an owned handle: its consuming methods are the only way to end it.

use crate::execute::heartbeat::{Heartbeat, LeaseState};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_drivers::ErrorClass;
use windlass_store::{Kept, Lease, NewPart, Result, Standing, Store, StoreError};

/// A chunk this process holds. Dropped without an end, its lease runs out and another process
/// takes it up.
pub(crate) struct ChunkLease {
    store: Arc<dyn Store>,
    heartbeat: Arc<Heartbeat>,
    pulse: Arc<LeaseState>,
}

impl ChunkLease {
    /// Takes charge of a claimed chunk whose lease is of this length.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        heartbeat: Arc<Heartbeat>,
        lease: Lease,
        length: Duration,
    ) -> ChunkLease {
        let pulse = heartbeat.keep(lease, length);
        ChunkLease { store, heartbeat, pulse }
    }

    pub(crate) fn lease(&self) -> Lease {
        self.pulse.lease
    }

    pub(crate) fn pulse(&self) -> &Arc<LeaseState> {
        &self.pulse
    }

    pub(crate) fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Stops extending the lease, since the end is at hand.
    pub(crate) fn forget(&self) {
        self.heartbeat.forget(self.pulse.lease);
    }

    /// Ends the chunk `COMPLETED`.
    pub(crate) async fn complete(self, settled: &[String]) -> Result<Kept> {
        let progress = self.pulse.progress();
        self.persist(|| self.store.complete(self.lease(), &progress, settled)).await
    }

    /// Ends the chunk `COMPLETED` with its part.
    pub(crate) async fn complete_part(self, part: &NewPart) -> Result<Kept> {
        let progress = self.pulse.progress();
        self.persist(|| self.store.complete_part(self.lease(), &progress, part)).await
    }

    /// Hands the chunk back, to be claimed again after `wait`.
    pub(crate) async fn release(
        self,
        error: Option<&str>,
        attempt: bool,
        wait: Duration,
    ) -> Result<Kept> {
        let progress = self.pulse.progress();
        self.persist(|| self.store.release(self.lease(), &progress, error, attempt, wait)).await
    }

    /// Ends the chunk `FAILED`. Only after a fence.
    pub(crate) async fn fail(
        self,
        error: &str,
        fail_job: bool,
        settled: &[String],
    ) -> Result<Kept> {
        let progress = self.pulse.progress();
        self.persist(|| self.store.fail(self.lease(), &progress, error, fail_job, settled)).await
    }

    /// Ends the chunk `CANCELLED`. Only after a fence.
    pub(crate) async fn cancel(self, settled: &[String]) -> Result<Kept> {
        let progress = self.pulse.progress();
        self.persist(|| self.store.end_cancelled(self.lease(), &progress, settled)).await
    }

    /// Repeats a call to the store while the store is away: what is committed beside the data
    /// must be told to the store, and every one of these calls may be repeated. A process that is
    /// to stop waits a few seconds only: the lease runs out, and the ledger knows.
    pub(crate) async fn persist<F, Fut>(&self, mut call: F) -> Result<Kept>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<Kept>>,
    {
        let mut wait = Duration::from_millis(20);
        let mut stopping = None::<Instant>;
        loop {
            if self.heartbeat.is_stopping() {
                stopping.get_or_insert_with(Instant::now);
            }
            let patient = stopping.is_none_or(|since| since.elapsed() < LAST_TRIES);
            match call().await {
                Err(StoreError::Database(error))
                    if matches!(error.class, ErrorClass::Connection | ErrorClass::Retry)
                        && self.pulse.standing() != Standing::Lost
                        && patient =>
                {
                    tracing::warn!(chunk = %self.lease().chunk, %error, "the store is away; waiting");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(2));
                }
                result => return result,
            }
        }
    }
}

/// How long a process that is to stop tries to reach the store.
const LAST_TRIES: Duration = Duration::from_secs(3);

impl Drop for ChunkLease {
    fn drop(&mut self) {
        self.heartbeat.forget(self.pulse.lease);
    }
}
