//! The state of the model: the rows of the store, the rows of the ledger, the processes, and what is in flight.

use std::collections::BTreeSet;

use crate::scope::Budget;

/// What identifies one lease. Before a restore of the store every nonce is 0, afterwards 1: nonces only separate
/// leases of the same epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub(crate) epoch: u8,
    pub(crate) nonce: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JobStatus {
    /// `QUEUED` or `PROCESSING`.
    Live,
    Paused,
    Completed,
    Failed,
    /// Until no chunk is open, the job is being cancelled.
    Cancelled,
}

/// The row of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Job {
    pub(crate) status: JobStatus,
    /// The number of chunks that have not ended.
    pub(crate) open: u8,
    /// It cannot be retried, since it is being pruned.
    pub(crate) closed: bool,
    /// Its chunks are deleted. The model keeps their last state for its properties.
    pub(crate) removed: bool,
}

impl Job {
    pub(crate) fn has_ended(&self) -> bool {
        match self.status {
            JobStatus::Live | JobStatus::Paused => false,
            JobStatus::Completed | JobStatus::Failed => true,
            JobStatus::Cancelled => self.open == 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChunkStatus {
    Pending,
    Processing,
    Completed,
    Failed,
    Cancelled,
}

/// The row of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Chunk {
    pub(crate) status: ChunkStatus,
    pub(crate) lease: Lease,
    /// Leased in order to cancel it.
    pub(crate) ending: bool,
    /// Its end is on the store's disk.
    pub(crate) durable: bool,
    /// The items whose dead letters are in the store, as bits.
    pub(crate) letters: u8,
    /// The lease that ended it.
    pub(crate) ended_by: Option<Lease>,
    pub(crate) range: Range,
    /// The end of its range before it was split, while the split is not on the store's disk.
    pub(crate) split_from: Option<u8>,
}

/// The items of a chunk: those after the first bound, up to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    pub(crate) after: u8,
    pub(crate) upto: u8,
}

/// Windlass's own database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) job: Job,
    pub(crate) chunks: Vec<Chunk>,
}

/// A row of the ledger, beside the user's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Row {
    pub(crate) lease: Lease,
    pub(crate) commits: u8,
    /// The number of items that the cursor has passed.
    pub(crate) cursor: u8,
    /// Items that the cursor has passed and that will be tried again, as bits.
    pub(crate) deferred: u8,
    /// Items that are dead letters, as bits.
    pub(crate) dead: u8,
}

/// What a batch does with its one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The effect is applied.
    Done,
    /// The item is tried again later.
    Deferred,
    /// The item becomes a dead letter.
    Dead,
}

/// The transaction of one batch: a compare-and-set on the ledger row, and the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Commit {
    pub(crate) chunk: u8,
    /// The lease of the sender.
    pub(crate) sender: Lease,
    /// The row that the sender read: what the compare-and-set expects.
    pub(crate) expected: Row,
    /// The row afterwards.
    pub(crate) after: Row,
    /// The item whose effect is applied.
    pub(crate) effect: Option<u8>,
}

/// A statement that was sent to the user's database and not executed yet. If no process waits for its answer, it may
/// never be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Statement {
    /// A batch. The number separates equal ones.
    Commit(Commit, u8),
    /// A fence.
    Fence(u8, Lease, Range),
}

/// How far a process is with its chunk. A crash or a loss of the lease may happen in each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    Idle,
    /// Leased in order to work, not fenced.
    Leased,
    /// The fence was refused.
    Refused,
    /// Fenced, not confirmed.
    Fenced(Row),
    /// Between two batches.
    Working(Row),
    /// A batch was sent; no answer yet.
    Sent(Commit, u8),
    /// The connection broke: it is not known whether the batch was committed. The row had this many commits before.
    Broken(u8),
    /// Fenced again after a broken connection, not confirmed.
    Refenced(Row),
    /// A redrive's chunk fails: the ledger must become final first. The row had this many commits.
    Settling(u8),
    /// The same, fenced again.
    Settled(Row),
    /// The chunk is to become `FAILED`, if the row is still like this.
    Failing(Option<Row>),
    /// The commits are on disk.
    Flushed(Row),
    /// The dead letters are copied.
    Copied(Row),
    /// The chunk has ended but is not counted. Only without [`crate::Clause::CountWithEnd`].
    Counting,
    /// Leased in order to cancel it, not fenced.
    LeasedToCancel,
    /// The same, fenced.
    FencedToCancel,
}

/// A process with one slot. Processes have no identity: they are kept sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Process {
    pub(crate) phase: Phase,
    pub(crate) chunk: u8,
    pub(crate) lease: Lease,
    /// The items of the chunk as they were when it was leased.
    pub(crate) range: Range,
    /// Its last commit was acknowledged, or found after a broken connection.
    pub(crate) acknowledged: bool,
    /// It ends the chunk at its cursor.
    pub(crate) splits: bool,
}

impl Process {
    pub(crate) const IDLE: Process = Process {
        phase: Phase::Idle,
        chunk: 0,
        lease: Lease { epoch: 0, nonce: 0 },
        range: Range { after: 0, upto: 0 },
        acknowledged: false,
        splits: false,
    };
}

/// The ledger and the effects as they are on the disk of the user's database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flushed {
    pub(crate) ledger: Vec<Option<Row>>,
    pub(crate) effects: Vec<Vec<u8>>,
}

/// One state of the whole system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) store: Store,
    /// The store as it was when it was backed up.
    pub(crate) backup: Option<Store>,
    pub(crate) restored: bool,
    /// `--after-restore` has been run.
    pub(crate) raised: bool,
    /// It was run while no other process worked and nothing was in flight, as the operator is told to.
    pub(crate) raised_quietly: bool,
    pub(crate) ledger: Vec<Option<Row>>,
    pub(crate) ledger_pruned: bool,
    /// How often the effect of each item of each planned chunk was applied.
    pub(crate) effects: Vec<Vec<u8>>,
    /// `None` if the database does not crash any more.
    pub(crate) flushed: Option<Flushed>,
    pub(crate) processes: Vec<Process>,
    pub(crate) in_flight: BTreeSet<Statement>,
    /// Faults, failures and commands that may still happen.
    pub(crate) left: Budget,
    /// An effect was applied after its chunk had ended.
    pub(crate) late_effect: bool,
    /// The ledger refused a lease that the store confirms.
    pub(crate) valid_refused: bool,
}

impl State {
    /// Whether a process works on the present lease of a chunk.
    pub(crate) fn has_holder(&self, chunk: u8) -> bool {
        let Some(lease) = self.chunk(chunk).map(|chunk| chunk.lease) else { return false };
        self.processes.iter().any(|process| {
            process.phase != Phase::Idle && process.chunk == chunk && process.lease == lease
        })
    }

    /// The chunks that the store knows.
    pub(crate) fn chunk_numbers(&self) -> std::ops::Range<u8> {
        0..self.store.chunks.len() as u8
    }

    /// Whether the ledger has rows of chunks that the store does not know.
    pub(crate) fn has_unknown_rows(&self) -> bool {
        self.ledger.iter().skip(self.store.chunks.len()).any(Option::is_some)
    }

    /// A chunk, unless a restored store does not know it.
    pub(crate) fn chunk(&self, number: u8) -> Option<&Chunk> {
        self.store.chunks.get(usize::from(number))
    }

    /// Whether a process waits for the answer of a statement.
    pub(crate) fn waiting(&self, statement: &Statement) -> Option<usize> {
        let Statement::Commit(commit, copy) = statement else { return None };
        self.processes.iter().position(|process| process.phase == Phase::Sent(*commit, *copy))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.processes.iter().all(|process| process.phase == Phase::Idle)
    }

    /// Puts everything in the user's database on its disk, as each transaction that waits for the disk does.
    pub(crate) fn flush(&mut self) {
        self.flushed = (self.left.data_crashes > 0)
            .then(|| Flushed { ledger: self.ledger.clone(), effects: self.effects.clone() });
    }

    /// Forgets what cannot matter any more, so that equal situations are equal states.
    pub(crate) fn normalize(&mut self) {
        for process in &mut self.processes {
            if process.phase == Phase::Idle {
                *process = Process::IDLE;
            }
        }
        self.processes.sort_unstable();
    }
}
