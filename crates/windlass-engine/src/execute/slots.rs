//! The pool: the slots of a process, and the chunks that have left them and are being ended.

use crate::execute::chunk_runner::{self, Chunk, ChunkResult, ClaimOutcome};
use crate::execute::worker::Shutdown;
use metrics::histogram;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};

/// What a worker did until it was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Chunks it completed.
    pub completed: u64,
    /// Chunks it handed back.
    pub handed_back: u64,
    /// Chunks it gave up as failed.
    pub failed: u64,
    /// Chunks it lost to another worker.
    pub lost: u64,
}

/// Chunks at work, and plain ones being completed. A slot is free as soon as everything of a plain
/// chunk is committed beside the data; telling the store goes on beside it. Any other end holds
/// its slot, since it may pause or fail the job.
pub(crate) struct SlotPool {
    slots: usize,
    shutdown: Shutdown,
    working: JoinSet<(Left, Duration)>,
    /// Plain chunks that gather, to be completed together.
    plain: Vec<ChunkResult>,
    /// When they are completed at the latest.
    due: Option<Instant>,
    completing: JoinSet<Vec<ClaimOutcome>>,
    pace: Pace,
    tally: WorkerStats,
}

/// How a chunk left its slot.
enum Left {
    Plain(Box<ChunkResult>),
    ClaimOutcome(ClaimOutcome),
}

impl Left {
    /// Whether the chunk is done with, rather than handed back or lost.
    fn is_over(&self) -> bool {
        matches!(
            self,
            Left::Plain(_) | Left::ClaimOutcome(ClaimOutcome::Completed | ClaimOutcome::Failed)
        )
    }
}

/// How long plain chunks gather before they are completed, while others are at work: short beside
/// what people notice, long beside the work on a short chunk.
const GATHERING: Duration = Duration::from_millis(50);

/// Plain chunks per slot that wait for the store, beyond which no slot takes another: the store
/// cannot keep up.
const MOST_WAITING: usize = 8;

impl SlotPool {
    pub(crate) fn new(slots: usize, shutdown: Shutdown) -> SlotPool {
        SlotPool {
            slots,
            shutdown,
            working: JoinSet::new(),
            plain: Vec::new(),
            due: None,
            completing: JoinSet::new(),
            pace: Pace::default(),
            tally: WorkerStats::default(),
        }
    }

    pub(crate) fn has_free_slot(&self) -> bool {
        self.working.len() < self.slots && self.plain.len() <= MOST_WAITING * self.slots
    }

    /// Puts a chunk to work.
    pub(crate) fn take(&mut self, chunk: Chunk) {
        let shutdown = self.shutdown.clone();
        let job = chunk.job.clone();
        self.working.spawn(async move {
            let begun = Instant::now();
            let worked = chunk_runner::work(chunk, shutdown).await;
            let left = match worked.is_plain() {
                true => Left::Plain(Box::new(worked)),
                false => Left::ClaimOutcome(worked.end().await),
            };
            let took = begun.elapsed();
            if left.is_over() {
                let job_type = job.definition().name.clone();
                histogram!("windlass_chunk_seconds", "job_type" => job_type).record(took);
            }
            (left, took)
        });
    }

    /// How many chunks to claim now, with so many waiting for a slot.
    pub(crate) fn room(&self, ready: usize) -> usize {
        self.pace.room(self.slots, self.working.len() + ready)
    }

    /// Waits until a chunk leaves its slot or some are completed; for ever when there are none.
    pub(crate) async fn progress(&mut self) {
        // Now that free slots have been given what there is.
        self.complete_plain();
        let due = self.due.filter(|_| self.completing.is_empty());
        tokio::select! {
            Some(left) = self.working.join_next() => self.left(left),
            Some(ended) = self.completing.join_next() => self.ended(ended),
            () = sleep_until(due) => {}
        }
    }

    /// Ends everything: chunks at work finish the commit they are at, the others are handed back.
    pub(crate) async fn drain(mut self, ready: VecDeque<Chunk>) -> WorkerStats {
        for chunk in ready {
            let ended = chunk.hand_back().await;
            self.ended(Ok(vec![ended]));
        }
        while !(self.working.is_empty() && self.plain.is_empty() && self.completing.is_empty()) {
            self.progress().await;
        }
        self.tally
    }

    fn left(&mut self, joined: Result<(Left, Duration), JoinError>) {
        match joined {
            Ok((left, took)) => {
                self.pace.took(took);
                match left {
                    Left::ClaimOutcome(ended) => self.ended(Ok(vec![ended])),
                    Left::Plain(worked) => {
                        self.plain.push(*worked);
                        self.due.get_or_insert_with(|| Instant::now() + GATHERING);
                    }
                }
            }
            // A bug of ours panicked a slot; its hold is dropped and the chunk goes on elsewhere.
            Err(error) => tracing::error!(%error, "a slot died"),
        }
    }

    /// Completes what has gathered, a job at a time, when it is due or nothing else is at work;
    /// unless that is going on already: the longer it takes the more go together.
    fn complete_plain(&mut self) {
        let due = self.due.is_some_and(|due| due <= Instant::now())
            || self.working.is_empty()
            || self.plain.len() > MOST_WAITING * self.slots;
        if let Some(first) = self.plain.first()
            && self.completing.is_empty()
            && due
        {
            let job = first.job();
            let (together, others): (Vec<_>, _) =
                self.plain.drain(..).partition(|worked| worked.job() == job);
            self.plain = others;
            self.due = self.due.filter(|_| !self.plain.is_empty());
            self.completing.spawn(ChunkResult::end_together(together));
        }
    }

    fn ended(&mut self, joined: Result<Vec<ClaimOutcome>, JoinError>) {
        for ended in joined.unwrap_or_else(|error| {
            tracing::error!(%error, "the end of a chunk died");
            Vec::new()
        }) {
            match ended {
                ClaimOutcome::Completed => self.tally.completed += 1,
                ClaimOutcome::HandedBack => self.tally.handed_back += 1,
                ClaimOutcome::Failed => self.tally.failed += 1,
                ClaimOutcome::Lost => self.tally.lost += 1,
            }
        }
    }
}

/// For ever where there is no such time.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// How fast chunks go, which decides how many are claimed ahead. Short ones are claimed several
/// at once, so that claim, fence and confirmation are shared; long ones one per free slot, so that
/// no process sits on work that another could do.
#[derive(Default)]
struct Pace {
    average: Option<Duration>,
}

impl Pace {
    fn took(&mut self, took: Duration) {
        self.average = Some(self.average.map_or(took, |average| (average * 7 + took) / 8));
    }

    /// How many to claim now, with so many held. Where chunks are claimed ahead, none until half
    /// of them are used up: otherwise each that ends would be replaced by a claim of its own.
    fn room(&self, slots: usize, held: usize) -> usize {
        let ahead = match self.average {
            Some(average) if average < Duration::from_millis(20) => slots * 16,
            Some(average) if average < Duration::from_millis(100) => slots * 4,
            _ => return slots.saturating_sub(held),
        };
        if held > ahead / 2 { 0 } else { ahead - held }
    }
}
