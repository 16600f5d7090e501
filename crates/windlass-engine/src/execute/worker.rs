//! The worker: runs the loops of one process and gives leased chunks to its slots.

use crate::background::BackgroundTasks;
use crate::engine::{Engine, processing_enabled};
use crate::execute::acquire::{AcquireRequest, Acquirer, Signals};
use crate::execute::heartbeat::Heartbeat;
use crate::execute::ready_queue::ReadyQueue;
use crate::execute::slots::{SlotPool, WorkerStats};
use crate::execute::throttled::Saturated;
use crate::operate::{connection_budget, health_probe, maintenance, retention};
use crate::plan::segment_planner;
use crate::shutdown::Shutdown;
use crate::submit::{dependents, outbox_relay};
use futures::future::{Fuse, FusedFuture, FutureExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use windlass_core::JobId;
use windlass_store::Topics;

/// Options of a worker.
///
/// ```
/// use windlass_engine::Options;
///
/// let options = Options::default().with_slots(8).with_name("night-1");
/// assert_eq!(options.slots, 8);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How many chunks this process works at once.
    pub slots: usize,
    /// The name that listings show.
    pub name: String,
    /// Processes only this job.
    pub only: Option<JobId>,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "worker".to_owned());
        let name = format!("{host}:{}", std::process::id());
        // Two slots per core: a slot spends much of its time waiting for the network and the disk.
        Options { slots: cores * 2, name, only: None }
    }
}

impl Options {
    /// Sets how many chunks this process may run at once.
    pub fn with_slots(self, slots: usize) -> Options {
        Options { slots, ..self }
    }

    /// Sets the name that listings show.
    pub fn with_name(self, name: impl Into<String>) -> Options {
        Options { name: name.into(), ..self }
    }

    /// Processes only this job.
    pub fn with_only(self, job: JobId) -> Options {
        Options { only: Some(job), ..self }
    }
}

/// All loops of one process: planning, chunks, heartbeats, maintenance, dependents and the outbox.
///
/// ```no_run
/// use windlass_engine::{Engine, Options, Worker};
///
/// async fn work_for_an_hour(engine: Engine) {
///     let (worker, handle) = Worker::new(engine, Options::default());
///     let working = tokio::spawn(worker.run());
///     tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
///     handle.shutdown();
///     let _stats = working.await;
/// }
/// ```
pub struct Worker {
    engine: Engine,
    options: Options,
    shutdown: Shutdown,
}

/// Stops a running worker.
///
/// ```no_run
/// use windlass_engine::Handle;
///
/// async fn stop_at_ctrl_c(handle: Handle) {
///     let _ = tokio::signal::ctrl_c().await;
///     handle.shutdown();
/// }
/// ```
#[derive(Clone)]
pub struct Handle {
    shutdown: Shutdown,
}

impl Handle {
    /// Requests a graceful shutdown. The worker leases nothing new. Chunks in progress finish their
    /// current commit and are completed or handed back.
    pub fn shutdown(&self) {
        self.shutdown.request();
    }
}

/// How often a worker with chunks in reserve looks for chunks of higher priority, if no
/// notification arrives earlier.
const PRIORITY_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Worker {
    /// A worker and the handle that stops it.
    pub fn new(engine: Engine, options: Options) -> (Worker, Handle) {
        let shutdown = Shutdown::default();
        let handle = Handle { shutdown: shutdown.clone() };
        (Worker { engine, options, shutdown }, handle)
    }

    /// Works until the handle stops it.
    pub async fn run(self) -> WorkerStats {
        if !processing_enabled() {
            tracing::warn!("processing is disabled by WINDLASS_PROCESSING_ENABLED=false");
        }
        if let Err(error) = self.engine.refresh_controls().await {
            tracing::warn!(%error, "failed to load runtime controls; retrying");
        }
        let heartbeat = Arc::new(Heartbeat::new(self.shutdown.clone()));
        let heartbeats = BackgroundTasks::default();
        let store = self.engine.store().clone();
        heartbeats.spawn("heartbeat", heartbeat.clone().run(store, self.shutdown.clone()));
        let tasks = self.start_background_tasks(&heartbeat);
        let stats = self.work_chunks(&heartbeat).await;
        tasks.join().await;
        self.engine.shared.steps.close_idle(Duration::ZERO).await;
        // Only now: leases are renewed until everything is handed back.
        self.shutdown.mark_complete();
        heartbeats.join().await;
        stats
    }

    fn start_background_tasks(&self, heartbeat: &Arc<Heartbeat>) -> BackgroundTasks {
        let tasks = BackgroundTasks::default();
        let capabilities = self.engine.capabilities(&self.options.name, self.options.only);
        let (engine, shutdown) = (|| self.engine.clone(), || self.shutdown.clone());
        let planning =
            segment_planner::run(engine(), capabilities.clone(), heartbeat.clone(), shutdown());
        tasks.spawn("segment planner", planning);
        let slots = self.options.slots;
        let maintenance =
            maintenance::run(engine(), capabilities, slots, heartbeat.clone(), shutdown());
        tasks.spawn("maintenance", maintenance);
        tasks.spawn("retention", retention::run(engine(), shutdown()));
        tasks.spawn("dependents", dependents::run(engine(), shutdown()));
        if !self.engine.shared.budgets.is_empty() {
            let shares = connection_budget::run(engine(), self.options.only, shutdown());
            tasks.spawn("connection budget", shares);
        }
        for (name, connection) in &self.engine.config().connections {
            if let Some(health) = connection.health.clone() {
                let probe = health_probe::run(engine(), name.clone(), health, shutdown());
                tasks.spawn("health probe", probe);
            }
        }
        if self.options.only.is_none() {
            tasks.spawn("outbox relay", outbox_relay::run(engine(), shutdown()));
        }
        tasks
    }

    /// Gives chunks to slots until shutdown. Slots keep working while the next chunks are acquired.
    async fn work_chunks(&self, heartbeat: &Arc<Heartbeat>) -> WorkerStats {
        let capabilities = self.engine.capabilities(&self.options.name, self.options.only);
        let saturated = watch::Sender::new(Saturated::default());
        let changes = self.engine.store().subscribe_to(Topics::CHUNKS);
        let acquirer = Acquirer {
            engine: &self.engine,
            capabilities,
            heartbeat,
            shutdown: &self.shutdown,
            signals: Signals { changes, saturated: saturated.subscribe() }.into(),
        };
        let mut changes = self.engine.store().subscribe_to(Topics::CHUNKS);
        let mut pool = SlotPool::new(self.options.slots, self.shutdown.clone());
        let mut ready = ReadyQueue::default();
        let mut acquiring = std::pin::pin!(Fuse::terminated());
        let mut drained = false;
        let mut poll_priority_at = Instant::now();
        let mut polling_priority = false;
        while !self.shutdown.requested() {
            // Acquire at most one more urgent chunk per slot: other processes need some as well.
            // All chunks of one job have the same priority, so a worker of one job never polls. Chunks that can start now
            // delay no others.
            let least_urgent = ready.lowest_priority();
            let wanted = match self.options.only.is_none() && pool.is_short_of_slots(&ready) {
                true => self.options.slots.saturating_sub(ready.urgent()),
                false => 0,
            };
            if wanted > 0 && acquiring.is_terminated() && poll_priority_at <= Instant::now() {
                polling_priority = true;
                poll_priority_at = Instant::now() + PRIORITY_POLL_INTERVAL;
                let above = Some(least_urgent);
                let request = AcquireRequest { most: wanted, drained: false, above };
                acquiring.set(acquirer.acquire(request).fuse());
            }
            // While the poll is running, less urgent chunks wait for its answer.
            let above = polling_priority.then_some(least_urgent);
            while pool.has_free_slot()
                && let Some(chunk) = ready.pop(above, |job| pool.in_slots(job))
            {
                pool.start(chunk);
            }
            ready.read_ahead(self.options.slots);
            let (now_saturated, at_once) = pool.saturated(&ready);
            saturated.send_if_modified(|known| {
                let changed = *known != now_saturated;
                *known = now_saturated;
                changed
            });
            let most = pool.room(ready.len()).min(at_once);
            if most > 0 && acquiring.is_terminated() {
                let request = AcquireRequest { most, drained, above: None };
                acquiring.set(acquirer.acquire(request).fuse());
            }
            let until_poll = poll_priority_at.saturating_duration_since(Instant::now());
            tokio::select! {
                acquired = &mut acquiring, if !acquiring.is_terminated() => {
                    if polling_priority && !acquired.chunks.is_empty() {
                        // There may be more of this priority.
                        poll_priority_at = Instant::now();
                    }
                    polling_priority = false;
                    drained = acquired.drained;
                    acquired.chunks.into_iter().for_each(|chunk| ready.push(chunk));
                }
                () = changes.changed(until_poll),
                    if wanted > 0 && acquiring.is_terminated() => poll_priority_at = Instant::now(),
                () = pool.progress() => {}
                () = self.shutdown.wait() => {}
            }
            pool.take_resumed().into_iter().for_each(|chunk| ready.push_front(chunk));
        }
        if !acquiring.is_terminated() {
            acquiring.await.chunks.into_iter().for_each(|chunk| ready.push(chunk));
        }
        pool.drain(ready).await
    }
}
