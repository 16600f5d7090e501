//! The worker: claims chunks, fences them, and gives each to a slot.

use crate::EngineError;
use crate::engine::{Engine, processing_enabled};
use crate::execute::chunk_runner::Chunk;
use crate::execute::heartbeat::Heartbeat;
use crate::execute::lease::ChunkLease;
use crate::execute::settlement;
use crate::execute::slots::{SlotPool, WorkerStats};
use crate::job_context::JobContext;
use crate::operate::after_restore;
use crate::operate::availability::is_connection_error;
use crate::operate::health_probe;
use crate::operate::maintenance;
use crate::operate::retention;
use crate::plan::segment_planner;
use crate::submit::dependents;
use crate::submit::outbox_relay;
use futures::future::{Fuse, FusedFuture, FutureExt};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;
use windlass_connectors::{Fence, Ledger};
use windlass_core::ErrorKind;
use windlass_core::{JobId, RetryPolicy};
use windlass_drivers::ErrorClass;
use windlass_store::{Capabilities, ClaimedChunk, Lease, Standing};

/// How a worker works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many chunks are at work at once in this process.
    pub slots: usize,
    /// The name listings show.
    pub name: String,
    /// Only this job.
    pub only: Option<JobId>,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        // A slot waits for the network and the disk a good part of its time.
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "worker".to_owned());
        let name = format!("{host}:{}", std::process::id());
        Options { slots: cores * 2, name, only: None }
    }
}

/// All the loops of one process.
pub struct Worker {
    engine: Engine,
    options: Options,
    shutdown: Shutdown,
}

/// Steers a running worker.
#[derive(Clone)]
pub struct Handle {
    shutdown: Shutdown,
}

impl Handle {
    /// Claims nothing new; chunks at work finish the commit they are at and are completed or
    /// handed back.
    pub fn shutdown(&self) {
        self.shutdown.move_to(State::Requested);
    }
}

impl Worker {
    /// A worker and the handle that stops it.
    pub fn new(engine: Engine, options: Options) -> (Worker, Handle) {
        let shutdown = Shutdown { state: Arc::new(watch::Sender::new(State::Running)) };
        let handle = Handle { shutdown: shutdown.clone() };
        (Worker { engine, options, shutdown }, handle)
    }

    /// Works until the handle stops it.
    pub async fn run(self) -> WorkerStats {
        let heartbeat = Arc::new(Heartbeat::new(self.shutdown.clone()));
        let by = self.engine.capabilities(&self.options.name, self.options.only);
        if !processing_enabled() {
            tracing::warn!("WINDLASS_PROCESSING_ENABLED is false: this process takes up no work");
        }
        if let Err(error) = self.engine.refresh_controls().await {
            tracing::warn!(%error, "cannot hear what is stopped or limited yet");
        }
        let store = self.engine.store().clone();
        let beating = tokio::spawn(heartbeat.clone().run(store, self.shutdown.clone()));
        let loading = tokio::spawn(segment_planner::run(
            self.engine.clone(),
            by.clone(),
            heartbeat.clone(),
            self.shutdown.clone(),
        ));
        let housekeeping = tokio::spawn(maintenance::run(
            self.engine.clone(),
            by.clone(),
            self.options.slots,
            self.shutdown.clone(),
        ));
        let mut watching = JoinSet::new();
        for (name, connection) in &self.engine.config().connections {
            if let Some(health) = connection.health.clone() {
                let (engine, shutdown) = (self.engine.clone(), self.shutdown.clone());
                watching.spawn(health_probe::watch(engine, name.clone(), health, shutdown));
            }
        }
        let pruning = tokio::spawn(retention::run(self.engine.clone(), self.shutdown.clone()));
        let following = tokio::spawn(dependents::run(self.engine.clone(), self.shutdown.clone()));
        if self.options.only.is_none() {
            tokio::spawn(outbox_relay::run(self.engine.clone(), self.shutdown.clone()));
        }
        let tally = self.work(&by, &heartbeat).await;
        // The heartbeat goes on until everything is handed back.
        let _ = tokio::join!(loading, housekeeping, pruning, following, watching.join_all());
        self.engine.shared.steps.rest(Duration::ZERO).await;
        self.shutdown.move_to(State::Complete);
        let _ = beating.await;
        tally
    }

    async fn work(&self, by: &Capabilities, heartbeat: &Arc<Heartbeat>) -> WorkerStats {
        let mut pool = SlotPool::new(self.options.slots, self.shutdown.clone());
        let mut ready: VecDeque<Chunk> = VecDeque::new();
        // Slots go on while the next chunks are claimed and fenced.
        let mut claiming = std::pin::pin!(Fuse::terminated());
        let mut drained = false;
        // When to look for something more urgent than what is claimed ahead, at the latest.
        let mut look_at = Instant::now();
        let mut looking = false;
        while !self.shutdown.requested() {
            // Of what is more urgent than the least urgent that waits, no more than there are slots:
            // other processes want some too. Of one job all is as urgent.
            let least = ready.back().map_or(u8::MAX, Chunk::priority);
            let urgent = ready.iter().take_while(|chunk| chunk.priority() > least).count();
            let wanted = match ready.is_empty() || self.options.only.is_some() {
                true => 0,
                false => self.options.slots.saturating_sub(urgent),
            };
            if wanted > 0 && claiming.is_terminated() && look_at <= Instant::now() {
                (looking, look_at) = (true, Instant::now() + POLL_INTERVAL);
                let next = Next { most: wanted, drained: false, above: Some(least) };
                claiming.set(self.claim(by, heartbeat, next).fuse());
            }
            // What is less urgent does not begin while something more urgent may be on its way.
            while pool.has_free_slot()
                && ready.front().is_some_and(|next| !looking || next.priority() > least)
                && let Some(chunk) = ready.pop_front()
            {
                pool.take(chunk);
            }
            let most = pool.room(ready.len());
            if most > 0 && claiming.is_terminated() {
                let next = Next { most, drained, above: None };
                claiming.set(self.claim(by, heartbeat, next).fuse());
            }
            let until_look = look_at.saturating_duration_since(Instant::now());
            tokio::select! {
                (claimed, took_all) = &mut claiming, if !claiming.is_terminated() => {
                    if looking && !claimed.is_empty() {
                        // There may be more of it.
                        look_at = Instant::now();
                    }
                    looking = false;
                    drained = took_all;
                    claimed.into_iter().for_each(|chunk| queue(&mut ready, chunk));
                }
                () = self.engine.store().changed(until_look),
                    if wanted > 0 && claiming.is_terminated() => look_at = Instant::now(),
                () = pool.progress() => {}
                () = self.shutdown.wait() => {}
            }
        }
        if !claiming.is_terminated() {
            ready.extend(claiming.await.0);
        }
        pool.drain(ready).await
    }

    /// Waits for chunks, and opens them. None when the worker shuts down, or when nothing is more
    /// urgent than what is there. Where the last claim took all there was, the store says when there
    /// is more. Says also whether this one did.
    async fn claim(
        &self,
        by: &Capabilities,
        heartbeat: &Arc<Heartbeat>,
        next: Next,
    ) -> (Vec<Chunk>, bool) {
        let mut idle = IdleBackoff::default();
        let mut drained = next.drained;
        while !self.shutdown.requested() {
            if drained {
                tokio::select! {
                    () = self.engine.store().changed(idle.next()) => drained = false,
                    () = self.shutdown.wait() => {}
                }
                continue;
            }
            let by = Capabilities { above: next.above, ..self.engine.claimable(by) };
            match self.engine.store().claim_chunks(&by, next.most as u32).await {
                Ok(claimed) => {
                    // Of what is less urgent, nothing was asked.
                    drained = claimed.len() < next.most && next.above.is_none();
                    if !claimed.is_empty() || next.above.is_some() {
                        return (self.open(claimed, heartbeat).await, drained);
                    }
                }
                // What is claimed already is not kept waiting.
                Err(_) if next.above.is_some() => return (Vec::new(), false),
                Err(error) => {
                    tracing::warn!(%error, "cannot claim chunks; trying again");
                    idle.pause().await;
                }
            }
        }
        (Vec::new(), drained)
    }

    /// Fences claimed chunks, several in one statement, and then makes sure in the store that
    /// they are still ours. Without that, a worker that stalled between claim and fence could
    /// bring back a ledger row that was pruned, and do a finished chunk again.
    async fn open(&self, claimed: Vec<ClaimedChunk>, heartbeat: &Arc<Heartbeat>) -> Vec<Chunk> {
        let mut by_connection: BTreeMap<_, Vec<(ChunkLease, ClaimedChunk, Arc<JobContext>)>> =
            BTreeMap::new();
        // A database that does not answer is asked once for all chunks of a job.
        let mut refused: HashMap<JobId, EngineError> = HashMap::new();
        for chunk in claimed {
            let id = chunk.lease.chunk.job;
            let context = match refused.get(&id) {
                Some(error) => Err(error.clone()),
                None => self.engine.context(id).await,
            };
            match context {
                Ok(job) => {
                    let hold = self.hold(heartbeat, chunk.lease, job.definition().chunk.lease);
                    let name = job.definition().source.connection.clone();
                    // Those that only read have no ledger there.
                    let place = (name, job.definition().step.kind.makes_parts());
                    by_connection.entry(place).or_default().push((hold, chunk, job));
                }
                Err(error) => {
                    let hold = self.hold(heartbeat, chunk.lease, Duration::from_secs(30));
                    refused.insert(id, error.clone());
                    self.refuse(hold, &chunk, error).await;
                }
            }
        }
        let mut opened = Vec::new();
        for ((connection, _), group) in by_connection {
            let fences: Vec<Fence> = group.iter().map(|(_, chunk, _)| fence_of(chunk)).collect();
            let Some(target) = group.first().map(|(_, _, job)| job.target.clone()) else {
                continue;
            };
            match target.fence(&fences).await {
                Ok(ledgers) => {
                    for ((hold, chunk, job), ledger) in group.into_iter().zip(ledgers) {
                        // A row of another claim: another worker was faster, or the store was restored.
                        let Some(ledger) = ledger else {
                            after_restore::refused(&self.engine, &connection, hold).await;
                            continue;
                        };
                        opened.push(Chunk::new(job, hold, chunk, ledger));
                    }
                }
                Err(error) => {
                    let error = EngineError::from(error);
                    for (hold, chunk, job) in group {
                        job.availability.failed(&error);
                        self.set_back(hold, &chunk, &job.definition().retry, &error).await;
                    }
                }
            }
        }
        self.confirm(opened).await
    }

    async fn confirm(&self, opened: Vec<Chunk>) -> Vec<Chunk> {
        let leases: Vec<Lease> = opened.iter().map(Chunk::lease).collect();
        if leases.is_empty() {
            return opened;
        }
        let standings = loop {
            match self.engine.store().confirm(&leases).await {
                Ok(standings) => break standings,
                // Dropped, their leases run out.
                Err(_) if self.shutdown.requested() => return Vec::new(),
                Err(error) => {
                    tracing::warn!(%error, "cannot confirm claimed chunks; trying again");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        let mut confirmed = Vec::new();
        for (chunk, standing) in opened.into_iter().zip(standings) {
            match standing {
                Standing::Held => confirmed.push(chunk),
                Standing::HandBack => drop(chunk.hand_back().await),
                Standing::Lost => drop(chunk),
            }
        }
        confirmed
    }

    /// Ends a chunk whose job cannot be worked here: fenced and failed where that is final,
    /// handed back where it may pass.
    async fn refuse(&self, hold: ChunkLease, chunk: &ClaimedChunk, error: EngineError) {
        if matches!(error.kind(), ErrorKind::Permanent)
            && let Some((ledger, settled)) = self.fence_anyway(chunk).await
        {
            let Ledger { cursor, counts, .. } = ledger;
            hold.pulse().report(windlass_store::Progress { cursor, counts });
            tracing::warn!(chunk = %chunk.lease.chunk, %error, "cannot be worked");
            report(hold.fail(&error.to_string(), true, &settled).await);
        } else {
            if is_connection_error(&error)
                && let Ok(Some(job)) = self.engine.store().snapshot(chunk.lease.chunk.job).await
            {
                self.engine.connection_failed(&job.definition.source.connection, &error);
            }
            self.set_back(hold, chunk, &RetryPolicy::default(), &error).await;
        }
    }

    /// Hands back a chunk that could not be fenced. It may not end `FAILED`, since a worker that
    /// held it before could still commit; so where trying again is no use its job is paused, with
    /// the reason.
    async fn set_back(
        &self,
        hold: ChunkLease,
        chunk: &ClaimedChunk,
        retry: &RetryPolicy,
        error: &EngineError,
    ) {
        let id = chunk.lease.chunk;
        if !is_connection_error(error) {
            tracing::warn!(chunk = %id, %error, "cannot be fenced");
        }
        let failures = chunk.attempts + 1;
        let locked =
            matches!(error, EngineError::Data(data) if data.class() == Some(ErrorClass::Retry));
        let (attempt, again) = match error.kind() {
            // Away, or in the hands of a worker whose lease is lost: that passes by itself.
            ErrorKind::Unavailable => (false, true),
            ErrorKind::Transient if locked => (false, true),
            ErrorKind::Transient => (true, retry.wait_after(failures).is_some()),
            ErrorKind::Permanent => (true, false),
        };
        let message = error.to_string();
        report(hold.release(Some(&message), attempt, retry.backoff_after(failures)).await);
        if !again {
            let reason = format!("the ledger cannot be written: {message}; mend that, then resume");
            // Another chunk of the job may have been faster.
            if let Err(error) = self.engine.store().pause(id.job, Some(&reason)).await {
                tracing::debug!(job = %id.job, %error, "not paused");
            }
        }
    }

    /// Fences a chunk that this process cannot work; with the keys that a redrive has settled.
    async fn fence_anyway(&self, chunk: &ClaimedChunk) -> Option<(Ledger, Vec<String>)> {
        let snapshot = self.engine.store().snapshot(chunk.lease.chunk.job).await.ok()??;
        let target = self.engine.target_of(&snapshot.definition).ok()?;
        let ledger = target.fence(&[fence_of(chunk)]).await.ok()?.pop()??;
        let settled = match snapshot.root == snapshot.id {
            true => Vec::new(),
            false => settlement::settled_keys(target.as_ref(), chunk, &ledger).await.ok()?,
        };
        Some((ledger, settled))
    }

    fn hold(&self, heartbeat: &Arc<Heartbeat>, lease: Lease, length: Duration) -> ChunkLease {
        ChunkLease::new(self.engine.store().clone(), heartbeat.clone(), lease, length)
    }
}

/// What the next claim is to bring.
#[derive(Clone, Copy)]
struct Next {
    /// At most so many chunks.
    most: usize,
    /// Whether the last claim took all there was.
    drained: bool,
    /// Only what is more urgent than this priority, and without waiting for it.
    above: Option<u8>,
}

/// How often a worker that has claimed ahead looks for something more urgent, where nobody wakes it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Puts a chunk before those that are less urgent.
fn queue(ready: &mut VecDeque<Chunk>, chunk: Chunk) {
    let place = ready.partition_point(|waiting| waiting.priority() >= chunk.priority());
    ready.insert(place, chunk);
}

fn fence_of(chunk: &ClaimedChunk) -> Fence {
    let Lease { chunk: id, epoch, nonce } = chunk.lease;
    Fence { chunk: id, epoch, nonce, lost: chunk.lost }
}

/// An end that the store did not take: the lease runs out, and the ledger knows how far it went.
pub(crate) fn report(result: windlass_store::Result<windlass_store::Kept>) {
    if let Err(error) = result {
        tracing::warn!(%error, "the store did not take a chunk's end; its lease will run out");
    }
}

/// Waits that grow while nothing happens.
#[derive(Default)]
pub(crate) struct IdleBackoff {
    rounds: u32,
}

impl IdleBackoff {
    pub(crate) fn next(&mut self) -> Duration {
        self.rounds = (self.rounds + 1).min(6);
        Duration::from_millis(20 << self.rounds).min(Duration::from_secs(1))
    }

    pub(crate) fn reset(&mut self) {
        self.rounds = 0;
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }
}

/// Whether the worker is to stop, and has.
#[derive(Clone)]
pub(crate) struct Shutdown {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum State {
    Running,
    Requested,
    Complete,
}

impl Shutdown {
    pub(crate) fn requested(&self) -> bool {
        *self.state.borrow() >= State::Requested
    }

    pub(crate) fn complete(&self) -> bool {
        *self.state.borrow() >= State::Complete
    }

    pub(crate) async fn wait(&self) {
        self.reach(State::Requested).await;
    }

    pub(crate) async fn wait_complete(&self) {
        self.reach(State::Complete).await;
    }

    async fn reach(&self, state: State) {
        // The sender is part of this value, so it cannot be dropped while we wait.
        let _ = self.state.subscribe().wait_for(|now| *now >= state).await;
    }

    fn move_to(&self, state: State) {
        self.state.send_if_modified(|now| {
            let moves = state > *now;
            if moves {
                *now = state;
            }
            moves
        });
    }
}
