//! Acquiring chunks: lease them in the store, fence them beside the data, confirm the leases.
//!
//! The confirmation matters. A worker that stalls between lease and fence could otherwise recreate
//! a ledger row that was pruned meanwhile, and work a completed chunk again.

use crate::EngineError;
use crate::engine::Engine;
use crate::execute::chunk_runner::ChunkRunner;
use crate::execute::heartbeat::Heartbeat;
use crate::execute::lease::{ChunkLease, log_unrecorded};
use crate::execute::settlement;
use crate::execute::throttled::Saturated;
use crate::job_context::JobContext;
use crate::operate::after_restore;
use crate::operate::availability::is_connection_error;
use crate::shutdown::Shutdown;
use futures::StreamExt as _;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use windlass_connectors::{Fence, Ledger};
use windlass_core::{Backoff, Cursor, ErrorKind, JobId, RetryPolicy};
use windlass_drivers::ErrorClass;
use windlass_store::{Capabilities, Lease, LeaseStatus, LeasedChunk, Progress, Subscription};

/// Acquires chunks for the slots of one worker.
pub(crate) struct Acquirer<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) capabilities: Capabilities,
    pub(crate) heartbeat: &'a Arc<Heartbeat>,
    pub(crate) shutdown: &'a Shutdown,
    /// The same for all requests, so that no change between two of them is missed. Only one request
    /// runs at a time.
    pub(crate) signals: Mutex<Signals>,
}

/// What ends the wait for chunks.
pub(crate) struct Signals {
    /// Changes in the store.
    pub(crate) changes: Subscription,
    /// What must not be acquired now.
    pub(crate) saturated: watch::Receiver<Saturated>,
}

/// Which chunks to acquire.
#[derive(Clone, Copy)]
pub(crate) struct AcquireRequest {
    /// At most this many.
    pub(crate) most: usize,
    /// The last request emptied the queue: wait for a change before asking again.
    pub(crate) drained: bool,
    /// Only chunks of a higher priority than this, without waiting for any.
    pub(crate) above: Option<u8>,
}

/// Chunks that are leased, fenced and confirmed.
pub(crate) struct Acquired {
    pub(crate) chunks: Vec<ChunkRunner>,
    /// The queue had fewer chunks than were asked for.
    pub(crate) drained: bool,
}

/// The waits between looks at an empty queue. Notifications usually end them earlier.
const SHORTEST_POLL: Duration = Duration::from_millis(40);
const LONGEST_POLL: Duration = Duration::from_secs(1);
/// The wait before a confirmation that failed is repeated.
const CONFIRM_RETRY: Duration = Duration::from_millis(100);
/// How long a chunk is released whose read snapshot is gone.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(1);
/// The lease of a chunk whose job type cannot be read.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// How many contexts are resolved at the same time.
const CONTEXTS_AT_ONCE: usize = 8;

type Leased = (ChunkLease, LeasedChunk, Arc<JobContext>);

/// A job, and the number of the snapshot that a chunk of it is read under.
type ContextKey = (JobId, Option<i64>);
type MaybeContext = crate::Result<Option<Arc<JobContext>>>;

fn context_key(chunk: &LeasedChunk) -> ContextKey {
    (chunk.lease.chunk.job, chunk.key_set.snapshot)
}

impl Acquirer<'_> {
    /// Waits for chunks and acquires them. Returns none if the worker shuts down, or if `above` is
    /// set and nothing is that urgent.
    pub(crate) async fn acquire(&self, request: AcquireRequest) -> Acquired {
        let mut backoff = Backoff::new(SHORTEST_POLL, LONGEST_POLL);
        let mut signals = self.signals.lock().await;
        let Signals { changes, saturated } = &mut *signals;
        let mut drained = request.drained;
        while !self.shutdown.requested() {
            if drained {
                tokio::select! {
                    () = changes.changed(self.engine.poll_interval(backoff.next_wait())) => {
                        drained = false;
                    }
                    Ok(()) = saturated.changed() => drained = false,
                    () = self.shutdown.wait() => {}
                }
                continue;
            }
            let capabilities = self.engine.leasable(&self.capabilities);
            let capabilities = saturated.borrow_and_update().restrict(capabilities);
            let capabilities = Capabilities { above_priority: request.above, ..capabilities };
            match self.engine.store().lease_chunks(&capabilities, request.most as u32).await {
                Ok(leased) => {
                    // A request for urgent chunks says nothing about the others.
                    drained = leased.len() < request.most && request.above.is_none();
                    if !leased.is_empty() || request.above.is_some() {
                        return Acquired { chunks: self.open(leased).await, drained };
                    }
                }
                // Chunks in reserve wait for this answer: do not keep them waiting.
                Err(_) if request.above.is_some() => break,
                Err(error) => {
                    tracing::warn!(%error, "failed to lease chunks; retrying");
                    tokio::time::sleep(backoff.next_wait()).await;
                }
            }
        }
        Acquired { chunks: Vec::new(), drained: drained && request.above.is_none() }
    }

    /// Fences leased chunks, all chunks of one database in one statement, and confirms them.
    async fn open(&self, leased: Vec<LeasedChunk>) -> Vec<ChunkRunner> {
        let mut by_target: BTreeMap<(String, bool), Vec<Leased>> = BTreeMap::new();
        let contexts = self.contexts_of(&leased).await;
        for chunk in leased {
            match contexts[&context_key(&chunk)].clone() {
                // The job is planned again when its snapshot counts as lost; then the chunk is gone.
                Ok(None) => {
                    let lease = self.keep(chunk.lease, DEFAULT_LEASE);
                    log_unrecorded(lease.release(None, false, SNAPSHOT_WAIT).await);
                }
                Ok(Some(job)) => {
                    let lease = self.keep(chunk.lease, job.definition().chunk.lease);
                    let connection = job.definition().source.connection.clone();
                    // Jobs that only read have no ledger there.
                    let target = (connection, job.definition().step.kind.makes_parts());
                    by_target.entry(target).or_default().push((lease, chunk, job));
                }
                Err(error) => {
                    let lease = self.keep(chunk.lease, DEFAULT_LEASE);
                    self.reject(lease, &chunk, error).await;
                }
            }
        }
        let mut opened = Vec::new();
        for ((connection, _), group) in by_target {
            opened.extend(self.fence(&connection, group).await);
        }
        self.confirm(opened).await
    }

    /// The contexts of chunks, each resolved once and some at the same time. A context is `None` if the read snapshot
    /// that its chunks are read under is gone.
    async fn contexts_of(&self, leased: &[LeasedChunk]) -> HashMap<ContextKey, MaybeContext> {
        let keys: HashSet<ContextKey> = leased.iter().map(context_key).collect();
        let resolve = async |(id, snapshot): ContextKey| {
            let context = match snapshot {
                Some(number) => self.engine.context_under(id, number).await,
                None => self.engine.context(id).await.map(Some),
            };
            ((id, snapshot), context)
        };
        futures::stream::iter(keys.into_iter().map(resolve))
            .buffer_unordered(CONTEXTS_AT_ONCE)
            .collect()
            .await
    }

    /// Fences chunks of one target.
    async fn fence(&self, connection: &str, group: Vec<Leased>) -> Vec<ChunkRunner> {
        let fences: Vec<Fence> = group.iter().map(|(_, chunk, _)| fence_of(chunk)).collect();
        let Some(target) = group.first().map(|(_, _, job)| job.target.clone()) else {
            return Vec::new();
        };
        let mut fenced = Vec::with_capacity(group.len());
        match target.fence(&fences).await {
            Ok(ledgers) => {
                for ((lease, chunk, job), ledger) in group.into_iter().zip(ledgers) {
                    match ledger {
                        Some(ledger) => {
                            let chunk = ChunkRunner::new(job, lease, chunk, ledger);
                            fenced.extend(self.check_resumed(connection, chunk).await);
                        }
                        // The row has a higher epoch: another worker leased the chunk since, or
                        // the store was restored from a backup.
                        None => {
                            after_restore::handle_refused_fence(self.engine, connection, lease)
                                .await
                        }
                    }
                }
            }
            Err(error) => {
                let error = EngineError::from(error);
                for (lease, chunk, job) in group {
                    job.availability.failed(&error);
                    self.release(lease, &chunk, &job.definition().retry, &error).await;
                }
            }
        }
        fenced
    }

    /// Releases a chunk that is resumed in the middle of its range, if the ledger has rows of chunks that the store does
    /// not know: they may be its rest, split off after the backup that the store was restored from.
    async fn check_resumed(&self, connection: &str, chunk: ChunkRunner) -> Option<ChunkRunner> {
        if !matches!(chunk.ledger.cursor.position(), Cursor::Key(_)) {
            return Some(chunk);
        }
        match after_restore::unknown_chunk(self.engine, connection, chunk.lease().chunk.job).await {
            Ok(None) => return Some(chunk),
            Ok(Some(unknown)) => {
                after_restore::handle_unknown_chunk(self.engine, chunk.lease, unknown).await;
            }
            Err(error) => {
                chunk.job.availability.failed(&error);
                let retry = chunk.job.definition().retry.clone();
                self.release(chunk.lease, &chunk.leased, &retry, &error).await;
            }
        }
        None
    }

    async fn confirm(&self, opened: Vec<ChunkRunner>) -> Vec<ChunkRunner> {
        let leases: Vec<Lease> = opened.iter().map(ChunkRunner::lease).collect();
        if leases.is_empty() {
            return opened;
        }
        let statuses = loop {
            match self.engine.store().confirm(&leases).await {
                Ok(statuses) => break statuses,
                // The chunks are dropped, and their leases expire.
                Err(_) if self.shutdown.requested() => return Vec::new(),
                Err(error) => {
                    tracing::warn!(%error, "failed to confirm leased chunks; retrying");
                    tokio::time::sleep(CONFIRM_RETRY).await;
                }
            }
        };
        let mut confirmed = Vec::new();
        for (chunk, status) in opened.into_iter().zip(statuses) {
            match status {
                LeaseStatus::Held => confirmed.push(chunk),
                LeaseStatus::HandBack => drop(chunk.hand_back().await),
                LeaseStatus::Lost => drop(chunk),
            }
        }
        confirmed
    }

    /// Ends a chunk whose job cannot be worked here: failed if trying again cannot help, released
    /// otherwise.
    async fn reject(&self, lease: ChunkLease, chunk: &LeasedChunk, error: EngineError) {
        if error.kind() == ErrorKind::Permanent
            && let Some((ledger, settled)) = self.fence_unworkable(chunk).await
        {
            let Ledger { cursor, counts, .. } = ledger;
            lease.state().record_progress(Progress { cursor, counts, marked: None });
            tracing::warn!(chunk = %chunk.lease.chunk, %error, "chunk cannot be worked");
            log_unrecorded(lease.fail(&error.to_string(), true, &settled).await);
            return;
        }
        if is_connection_error(&error)
            && let Ok(Some(job)) = self.engine.store().snapshot(chunk.lease.chunk.job).await
        {
            self.engine.connection_failed(&job.definition.source.connection, &error);
        }
        self.release(lease, chunk, &RetryPolicy::default(), &error).await;
    }

    /// Releases a chunk that could not be fenced. It must not end `FAILED`, because an earlier
    /// leaseholder could still commit. If trying again cannot help, its job is paused.
    async fn release(
        &self,
        lease: ChunkLease,
        chunk: &LeasedChunk,
        retry: &RetryPolicy,
        error: &EngineError,
    ) {
        let id = chunk.lease.chunk;
        if !is_connection_error(error) {
            tracing::warn!(chunk = %id, %error, "failed to fence the chunk");
        }
        let failures = chunk.attempts + 1;
        let locked =
            matches!(error, EngineError::Data(data) if data.class() == Some(ErrorClass::Retry));
        let (counts_as_attempt, retryable) = match error.kind() {
            ErrorKind::Unavailable => (false, true),
            // Locked by an earlier leaseholder, whose transaction will end.
            ErrorKind::Transient if locked => (false, true),
            ErrorKind::Transient => (true, retry.wait_after(failures).is_some()),
            ErrorKind::Permanent => (true, false),
        };
        let message = error.to_string();
        let wait = retry.backoff_after(failures);
        log_unrecorded(lease.release(Some(&message), counts_as_attempt, wait).await);
        if !retryable {
            let reason = format!(
                "the ledger cannot be written: {message}; correct this, then resume the job"
            );
            // Another chunk of the job may have paused it already.
            if let Err(error) = self.engine.store().pause(id.job, Some(&reason)).await {
                tracing::debug!(job = %id.job, %error, "job was not paused");
            }
        }
    }

    /// Fences a chunk that this process cannot work. Returns its ledger, and for a redrive the keys
    /// that are settled.
    async fn fence_unworkable(&self, chunk: &LeasedChunk) -> Option<(Ledger, Vec<String>)> {
        let snapshot = self.engine.store().snapshot(chunk.lease.chunk.job).await.ok()??;
        let target = self.engine.target_of(&snapshot.definition).ok()?;
        let ledger = target.fence(&[fence_of(chunk)]).await.ok()?.pop()??;
        let settled = match snapshot.root == snapshot.id {
            true => Vec::new(),
            false => settlement::settled_keys(target.as_ref(), chunk, &ledger).await.ok()?,
        };
        Some((ledger, settled))
    }

    /// Starts to renew the lease of a chunk.
    fn keep(&self, lease: Lease, length: Duration) -> ChunkLease {
        ChunkLease::new(self.engine.store().clone(), self.heartbeat.clone(), lease, length)
    }
}

fn fence_of(chunk: &LeasedChunk) -> Fence {
    let Lease { chunk: id, epoch, nonce } = chunk.lease;
    Fence { chunk: id, epoch, nonce, lost: chunk.lost }
}
