//! The store's rules: leases, the ends of chunks, and the end of the job.

use crate::clause::Clause;
use crate::protocol::Protocol;
use crate::state::{Chunk, ChunkStatus, JobStatus, Lease, Phase, Process, Range, Row, State};

/// What the store says about a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStatus {
    Held,
    HandBack,
    Lost,
}

impl Protocol {
    /// Leases a chunk at a new epoch and nonce for an idle process.
    pub(crate) fn lease(&self, state: &mut State, process: usize, chunk: u8, cancel: bool) {
        let nonce = u8::from(state.restored);
        // A lease is on the disk before it is used, and with it everything before.
        for chunk in &mut state.store.chunks {
            chunk.durable |= chunk.split_from.take().is_some();
        }
        let row = &mut state.store.chunks[usize::from(chunk)];
        if !cancel || self.has(Clause::CancelRaisesEpoch) {
            row.lease = Lease { epoch: row.lease.epoch + 1, nonce };
        }
        (row.status, row.ending) = (ChunkStatus::Processing, cancel);
        let phase = if cancel { Phase::LeasedToCancel } else { Phase::Leased };
        let (lease, range) = (row.lease, row.range);
        state.processes[process] = Process { phase, chunk, lease, range, ..Process::IDLE };
    }

    /// Whether a chunk of a cancelled job may be leased in order to end it: it was leased before, and no other process
    /// ends it at present.
    pub(crate) fn can_lease_to_cancel(&self, state: &State, chunk: u8) -> bool {
        let row = &state.store.chunks[usize::from(chunk)];
        let open = matches!(row.status, ChunkStatus::Pending | ChunkStatus::Processing);
        open && !(row.ending && row.status == ChunkStatus::Processing)
    }

    /// The status of a lease.
    pub(crate) fn lease_status(&self, state: &State, process: &Process) -> LeaseStatus {
        if !self.is_leased(state, process) {
            return LeaseStatus::Lost;
        }
        match state.store.job.status {
            JobStatus::Live => LeaseStatus::Held,
            _ => LeaseStatus::HandBack,
        }
    }

    /// Whether the chunk is still at the lease of a process.
    pub(crate) fn is_leased(&self, state: &State, process: &Process) -> bool {
        let Some(row) = state.chunk(process.chunk) else { return false };
        let epoch = row.lease.epoch == process.lease.epoch || !self.has(Clause::EpochInStore);
        let nonce = row.lease.nonce == process.lease.nonce
            || !self.has(Clause::NonceInStore)
            || !self.has(Clause::EpochInStore);
        epoch && nonce && row.status == ChunkStatus::Processing && !state.store.job.removed
    }

    /// Returns a chunk to `PENDING`.
    pub(crate) fn release(&self, state: &mut State, process: &Process) {
        if self.is_leased(state, process) {
            expire(state, process.chunk);
        }
    }

    /// Ends a chunk, and the job with its last one. Returns whether the lease was valid.
    pub(crate) fn end_chunk(
        &self,
        state: &mut State,
        process: &Process,
        status: ChunkStatus,
        fail_job: bool,
    ) -> bool {
        if !self.is_leased(state, process) {
            return false;
        }
        let row = &mut state.store.chunks[usize::from(process.chunk)];
        (row.status, row.ended_by) = (status, Some(process.lease));
        // The end of a completed chunk does not wait for the disk: the ledger shows it again.
        row.durable = status != ChunkStatus::Completed;
        if fail_job && matches!(state.store.job.status, JobStatus::Live | JobStatus::Paused) {
            state.store.job.status = JobStatus::Failed;
        }
        if self.has(Clause::CountWithEnd) {
            self.count_ended(state);
        }
        true
    }

    /// Ends a chunk at its cursor and adds the rest as a new chunk, in one transaction. Returns whether the lease was
    /// valid. A chunk of a job that is not live is released.
    pub(crate) fn end_split(&self, state: &mut State, process: &Process, row: Row, half: bool) {
        let leased = self.is_leased(state, process) || !self.has(Clause::SplitComparesLease);
        if !leased || state.chunk(process.chunk).is_none() || state.store.job.removed {
            return;
        }
        if state.store.job.status != JobStatus::Live {
            return self.release(state, process);
        }
        let chunk = &mut state.store.chunks[usize::from(process.chunk)];
        let was_open = matches!(chunk.status, ChunkStatus::Pending | ChunkStatus::Processing);
        (chunk.status, chunk.ended_by) = (ChunkStatus::Completed, Some(process.lease));
        (chunk.durable, chunk.split_from) = (false, Some(chunk.range.upto));
        chunk.range.upto = row.cursor;
        let rest = Chunk {
            status: ChunkStatus::Pending,
            lease: Lease { epoch: 0, nonce: 0 },
            ending: false,
            durable: true,
            letters: 0,
            ended_by: None,
            range: Range { after: row.cursor, upto: process.range.upto },
            split_from: None,
        };
        if !half {
            state.store.chunks.push(rest);
            state.store.job.open += 1;
        }
        if was_open {
            self.count_ended(state);
        }
    }

    /// Counts a chunk as ended, and ends the job when nothing is open.
    pub(crate) fn count_ended(&self, state: &mut State) {
        state.store.job.open -= 1;
        self.advance(state);
    }

    /// Ends the job when nothing is open.
    pub(crate) fn advance(&self, state: &mut State) {
        if state.store.job.open > 0 {
            return;
        }
        if state.store.job.status == JobStatus::Live {
            let failed = |chunk: &Chunk| chunk.status == ChunkStatus::Failed;
            let failed = state.store.chunks.iter().any(failed);
            state.store.job.status = if failed { JobStatus::Failed } else { JobStatus::Completed };
        }
        // The end of a job is durable, and everything before it.
        if self.has(Clause::JobEndDurable) {
            for chunk in &mut state.store.chunks {
                (chunk.durable, chunk.split_from) = (true, None);
            }
        }
    }

    /// The store's server crashes and loses the ends that were not on its disk.
    pub(crate) fn lose_writes(&self, state: &mut State) {
        let job = &mut state.store.job;
        // A split that is lost takes its new chunk with it, which nothing has leased.
        if state.store.chunks.iter().any(|chunk| chunk.split_from.is_some()) {
            state.store.chunks.pop();
            job.open -= 1;
        }
        for chunk in &mut state.store.chunks {
            if chunk.status == ChunkStatus::Completed && !chunk.durable {
                (chunk.status, chunk.ended_by) = (ChunkStatus::Processing, None);
                chunk.range.upto = chunk.split_from.take().unwrap_or(chunk.range.upto);
                job.open += 1;
                if job.status == JobStatus::Completed {
                    job.status = JobStatus::Live;
                }
            }
        }
    }
}

/// Returns a chunk to `PENDING`, whatever process holds its lease.
pub(crate) fn expire(state: &mut State, chunk: u8) {
    let row = &mut state.store.chunks[usize::from(chunk)];
    (row.status, row.ending) = (ChunkStatus::Pending, false);
}
