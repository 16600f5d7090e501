//! The lease of one chunk as an owned handle: its consuming methods are the only way to end it.

use crate::execute::heartbeat::{Heartbeat, LeaseState};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_core::Backoff;
use windlass_drivers::ErrorClass;
use windlass_store::{
    ChunkOutcome, HandBack, Lease, LeaseStatus, NewPart, Result, Split, Store, StoreError,
};

/// A chunk that this process may work. If the handle is dropped, the lease expires and another
/// process takes the chunk.
pub(crate) struct ChunkLease {
    store: Arc<dyn Store>,
    heartbeat: Arc<Heartbeat>,
    state: Arc<LeaseState>,
}

impl ChunkLease {
    /// Starts to renew a lease of this length.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        heartbeat: Arc<Heartbeat>,
        lease: Lease,
        length: Duration,
    ) -> ChunkLease {
        let state = heartbeat.keep(lease, length);
        ChunkLease { store, heartbeat, state }
    }

    pub(crate) fn lease(&self) -> Lease {
        self.state.lease
    }

    pub(crate) fn state(&self) -> &Arc<LeaseState> {
        &self.state
    }

    pub(crate) fn heartbeat(&self) -> &Arc<Heartbeat> {
        &self.heartbeat
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Stops renewing the lease, because the chunk is about to end.
    pub(crate) fn stop_renewing(&self) {
        self.heartbeat.forget(self.state.lease);
    }

    /// Ends the chunk `COMPLETED` and stores its part. In a redrive, `settled` names the keys whose dead
    /// letters become `reprocessed`, unless the item failed again. `more_items` corrects an estimated number of
    /// records.
    pub(crate) async fn complete(
        self,
        settled: &[String],
        part: Option<&NewPart>,
        more_items: i64,
    ) -> Result<()> {
        let progress = self.state.progress();
        let outcome = || ChunkOutcome::Completed {
            settled: settled.to_vec(),
            part: part.cloned(),
            more_items,
        };
        self.persist(|| self.store.end_chunk(self.lease(), &progress, outcome())).await
    }

    /// Ends the chunk `COMPLETED` at its cursor, and makes the rest new chunks. If the job is not `PROCESSING`, releases
    /// the chunk and returns false.
    pub(crate) async fn split(self, split: &Split) -> Result<bool> {
        let progress = self.state.progress();
        if self.persist(|| self.store.split(self.lease(), &progress, split)).await? {
            return Ok(true);
        }
        self.release(None, false, Duration::ZERO).await?;
        Ok(false)
    }

    /// Releases the chunk. It can be leased again after `wait`.
    pub(crate) async fn release(
        self,
        error: Option<&str>,
        counts_as_attempt: bool,
        wait: Duration,
    ) -> Result<()> {
        let progress = self.state.progress();
        let back = HandBack::new(error, counts_as_attempt, wait);
        self.persist(|| self.store.release(self.lease(), &progress, back.clone())).await
    }

    /// Ends the chunk `FAILED`. The chunk must be fenced.
    pub(crate) async fn fail(self, error: &str, fail_job: bool, settled: &[String]) -> Result<()> {
        let progress = self.state.progress();
        self.persist(|| self.store.fail(self.lease(), &progress, error, fail_job, settled)).await
    }

    /// Ends the chunk `CANCELLED`. The chunk must be fenced.
    pub(crate) async fn cancel(self, settled: &[String]) -> Result<()> {
        let progress = self.state.progress();
        self.persist(|| self.store.end_cancelled(self.lease(), &progress, settled)).await
    }

    /// Repeats an idempotent call while the store is unavailable, so that the store learns what is
    /// committed beside the data. During a shutdown it gives up after a few seconds: the lease
    /// expires, and the next leaseholder reads the ledger.
    pub(crate) async fn persist<F, Fut, T>(&self, mut call: F) -> Result<T>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let mut backoff = Backoff::new(SHORTEST_RETRY, LONGEST_RETRY);
        let mut stopping_since = None::<Instant>;
        loop {
            if self.heartbeat.is_stopping() {
                stopping_since.get_or_insert_with(Instant::now);
            }
            let may_retry = stopping_since.is_none_or(|since| since.elapsed() < SHUTDOWN_PATIENCE)
                && self.state.status() != LeaseStatus::Lost;
            match call().await {
                Err(StoreError::Database(error))
                    if matches!(error.class, ErrorClass::Connection | ErrorClass::Retry)
                        && may_retry =>
                {
                    let chunk = self.lease().chunk;
                    tracing::warn!(%chunk, %error, "store unavailable; retrying");
                    tokio::time::sleep(backoff.next_wait()).await;
                }
                result => return result,
            }
        }
    }
}

/// Logs that the store did not record the end of a chunk. The lease expires, and the next
/// leaseholder continues from the ledger. A lost lease is not logged: the chunk has another holder.
pub(crate) fn log_unrecorded(result: Result<()>) {
    if let Err(error) = result
        && !matches!(error, StoreError::LeaseLost)
    {
        tracing::warn!(%error, "failed to record the end of a chunk; its lease will expire");
    }
}

const SHORTEST_RETRY: Duration = Duration::from_millis(20);
const LONGEST_RETRY: Duration = Duration::from_secs(2);
/// How long a process that shuts down retries to reach the store.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);

impl Drop for ChunkLease {
    fn drop(&mut self) {
        self.stop_renewing();
    }
}
