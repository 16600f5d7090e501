//! The slots of a worker: each works one chunk at a time, and chunks without dead letters are
//! completed in groups.

use crate::execute::chunk_runner::{self, ChunkResult, ChunkRunner, LeaseOutcome, ThrottleCause};
use crate::execute::completion;
use crate::execute::ready_queue::ReadyQueue;
use crate::execute::slot::{Slot, Slots};
use crate::execute::throttled::{Saturated, ThrottledChunks};
use crate::job_context::JobContext;
use crate::shutdown::Shutdown;
use metrics::histogram;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{Id, JoinError, JoinSet};
use windlass_core::JobId;

/// What a worker did until it was stopped.
///
/// ```
/// use windlass_engine::WorkerStats;
///
/// assert_eq!(WorkerStats::default().completed, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Chunks it completed.
    pub completed: u64,
    /// Chunks it handed back.
    pub handed_back: u64,
    /// Chunks it failed.
    pub failed: u64,
    /// Chunks whose lease it lost to another worker.
    pub lost: u64,
}

/// The chunks in progress, and those that are being completed.
///
/// A slot is free while the last batch of a chunk is committed, and as soon as all effects of a simple chunk are
/// committed; the completion in the store runs beside it. A throttled chunk leaves its slot and comes back when its
/// next batch may start. Any other end keeps its slot, because it may pause or fail the job.
pub(crate) struct SlotPool {
    slots: usize,
    places: Slots,
    shutdown: Shutdown,
    /// The chunks in slots, and those that have left theirs for their last commit.
    running: JoinSet<(SlotExit, Duration)>,
    /// The jobs of these chunks, and their places.
    jobs: HashMap<Id, (Arc<JobContext>, Slot)>,
    throttled: ThrottledChunks,
    /// Chunks that were throttled and wait for a slot again.
    resumed: Vec<ChunkRunner>,
    /// Simple chunks that wait to be completed together.
    simple: Vec<ChunkResult>,
    /// When they are completed at the latest.
    complete_at: Option<Instant>,
    completing: JoinSet<Vec<LeaseOutcome>>,
    prefetch: Prefetch,
    stats: WorkerStats,
}

/// How a chunk left its slot.
enum SlotExit {
    /// All effects are committed; the store still has to complete the chunk.
    Simple(Box<ChunkResult>),
    /// The next batch must wait.
    Throttled(Box<ChunkRunner>, ThrottleCause),
    Ended(LeaseOutcome),
}

impl SlotExit {
    /// Whether the work on the chunk is over, rather than handed back or lost.
    fn is_final(&self) -> bool {
        matches!(
            self,
            SlotExit::Simple(_) | SlotExit::Ended(LeaseOutcome::Completed | LeaseOutcome::Failed)
        )
    }
}

/// How long simple chunks wait for others before they are completed together. Too short to notice,
/// and long compared with the work on a short chunk.
const COMPLETION_DELAY: Duration = Duration::from_millis(50);

/// Simple chunks per slot that may wait for completion. Beyond it no slot takes another chunk,
/// because the store cannot keep up.
const MAX_UNCOMPLETED_PER_SLOT: usize = 8;

impl SlotPool {
    pub(crate) fn new(slots: usize, shutdown: Shutdown) -> SlotPool {
        SlotPool {
            slots,
            places: Slots::new(slots),
            shutdown,
            running: JoinSet::new(),
            jobs: HashMap::new(),
            throttled: ThrottledChunks::default(),
            resumed: Vec::new(),
            simple: Vec::new(),
            complete_at: None,
            completing: JoinSet::new(),
            prefetch: Prefetch::default(),
            stats: WorkerStats::default(),
        }
    }

    /// Whether a chunk can start. Not while as many chunks as there are slots are outside of theirs, nor while the
    /// store cannot keep up.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.places.busy() < self.slots
            && self.running.len() < self.slots * 2
            && self.simple.len() <= MAX_UNCOMPLETED_PER_SLOT * self.slots
    }

    /// Whether some of these chunks in reserve must wait for a slot.
    pub(crate) fn is_short_of_slots(&self, ready: &ReadyQueue) -> bool {
        ready.len() > 0 && (!self.has_free_slot() || ready.len() > self.slots - self.places.busy())
    }

    /// Starts a chunk in a free slot.
    pub(crate) fn start(&mut self, mut chunk: ChunkRunner) {
        let place = self.places.place();
        chunk.slot = Some(place.clone());
        let shutdown = self.shutdown.clone();
        let job = chunk.job.clone();
        let job_type = job.definition().name.clone();
        let task = self.running.spawn(async move {
            // A chunk that had left its slot may have taken the free one.
            chunk.enter_slot().await;
            let started = chunk.started_at();
            let result = chunk_runner::run(chunk, shutdown).await;
            let exit = match result.throttle_cause() {
                Some(cause) => SlotExit::Throttled(Box::new(result.into_chunk()), cause),
                None if result.is_simple() => SlotExit::Simple(Box::new(result)),
                None => SlotExit::Ended(result.end().await),
            };
            let duration = started.elapsed();
            if exit.is_final() {
                histogram!("windlass_chunk_seconds", "job_type" => job_type).record(duration);
            }
            (exit, duration)
        });
        self.jobs.insert(task.id(), (job, place));
    }

    /// The number of a job's chunks that are in slots.
    pub(crate) fn in_slots(&self, job: JobId) -> usize {
        self.jobs_in_slots().filter(|context| context.snapshot.id == job).count()
    }

    fn jobs_in_slots(&self) -> impl Iterator<Item = &JobContext> {
        self.jobs.values().filter(|(_, place)| place.is_entered()).map(|(job, _)| job.as_ref())
    }

    /// What to acquire no more chunks of, with these in reserve, and how many to acquire at once.
    pub(crate) fn saturated(&self, ready: &ReadyQueue) -> (Saturated, usize) {
        let others = self.jobs_in_slots().chain(ready.jobs()).collect::<Vec<_>>();
        self.throttled.saturated(self.slots, others.into_iter())
    }

    /// The chunks that were throttled and may continue.
    pub(crate) fn take_resumed(&mut self) -> Vec<ChunkRunner> {
        std::mem::take(&mut self.resumed)
    }

    /// How many chunks to acquire now, with `ready` in reserve.
    pub(crate) fn room(&self, ready: usize) -> usize {
        self.prefetch.room(self.slots, self.places.busy() + ready)
    }

    /// Waits until a chunk leaves its slot or a completion ends; forever if there is neither.
    pub(crate) async fn progress(&mut self) {
        self.complete_simple();
        let complete_at = self.complete_at.filter(|_| self.completing.is_empty());
        tokio::select! {
            Some(joined) = self.running.join_next_with_id() => self.slot_exited(joined),
            Some(joined) = self.throttled.next() => match joined {
                Ok(Ok(chunk)) => self.resumed.push(chunk),
                Ok(Err(outcome)) => self.count(Ok(vec![outcome])),
                Err(error) => log_panic(&error),
            },
            Some(joined) = self.completing.join_next() => self.count(joined),
            () = self.places.left() => {}
            () = sleep_until(complete_at) => {}
        }
    }

    /// Hands back chunks in reserve, and waits until running chunks have finished their commit and
    /// are completed or handed back.
    pub(crate) async fn drain(mut self, ready: ReadyQueue) -> WorkerStats {
        self.resumed.extend(ready.into_chunks());
        loop {
            for chunk in self.take_resumed() {
                let outcome = chunk.hand_back().await;
                self.count(Ok(vec![outcome]));
            }
            let chunks_left = !(self.running.is_empty() && self.throttled.is_empty());
            if !chunks_left && self.simple.is_empty() && self.completing.is_empty() {
                return self.stats;
            }
            self.progress().await;
        }
    }

    fn slot_exited(&mut self, joined: Result<(Id, (SlotExit, Duration)), JoinError>) {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        if let Some((_, place)) = self.jobs.remove(&id) {
            place.free();
        }
        let (exit, duration) = match joined {
            Ok((_, exit)) => exit,
            Err(error) => return log_panic(&error),
        };
        if !matches!(exit, SlotExit::Throttled(..)) {
            self.prefetch.observe(duration);
        }
        match exit {
            SlotExit::Ended(outcome) => self.count(Ok(vec![outcome])),
            SlotExit::Throttled(chunk, cause) => self.throttled.push(*chunk, cause),
            SlotExit::Simple(result) => {
                self.simple.push(*result);
                self.complete_at.get_or_insert_with(|| Instant::now() + COMPLETION_DELAY);
            }
        }
    }

    /// Completes the waiting chunks if they are due or no slot is busy. One completion runs at a time: the longer it
    /// takes, the more chunks the next one has.
    fn complete_simple(&mut self) {
        let due = self.complete_at.is_some_and(|time| time <= Instant::now())
            || self.running.is_empty()
            || self.simple.len() > MAX_UNCOMPLETED_PER_SLOT * self.slots;
        if due && !self.simple.is_empty() && self.completing.is_empty() {
            self.complete_at = None;
            self.completing.spawn(completion::complete_all(std::mem::take(&mut self.simple)));
        }
    }

    fn count(&mut self, joined: Result<Vec<LeaseOutcome>, JoinError>) {
        let outcomes = joined.unwrap_or_else(|error| {
            tracing::error!(%error, "chunk completion task panicked");
            Vec::new()
        });
        for outcome in outcomes {
            match outcome {
                LeaseOutcome::Completed => self.stats.completed += 1,
                LeaseOutcome::HandedBack => self.stats.handed_back += 1,
                LeaseOutcome::Failed => self.stats.failed += 1,
                LeaseOutcome::LeaseLost => self.stats.lost += 1,
            }
        }
    }
}

fn log_panic(error: &JoinError) {
    tracing::error!(
        %error,
        "worker slot panicked; its chunk will be retried when the lease expires"
    );
}

/// Sleeps forever without a time.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// How many chunks to lease ahead of free slots. Short chunks are leased in groups, so that lease,
/// fence and confirmation are shared. Long ones are leased one per free slot, so that no process
/// reserves work that another could do.
#[derive(Default)]
struct Prefetch {
    average_duration: Option<Duration>,
}

impl Prefetch {
    fn observe(&mut self, duration: Duration) {
        let average = self.average_duration;
        self.average_duration = Some(average.map_or(duration, |old| (old * 7 + duration) / 8));
    }

    /// How many to lease now, with `leased` in slots or in reserve. Where chunks are leased ahead,
    /// none until half of the reserve is used: otherwise each chunk that ends would cost a lease
    /// statement of its own.
    fn room(&self, slots: usize, leased: usize) -> usize {
        let ahead = match self.average_duration {
            Some(average) if average < Duration::from_millis(20) => slots * 16,
            Some(average) if average < Duration::from_millis(100) => slots * 4,
            _ => return slots.saturating_sub(leased),
        };
        if leased > ahead / 2 { 0 } else { ahead - leased }
    }
}
