//! What operators, the retention and a restore do to the store.

use crate::action::Action;
use crate::clause::Clause;
use crate::protocol::Protocol;
use crate::state::{ChunkStatus, JobStatus, Lease, Process, State};

/// A nonce that no process has.
const UNLIKE_ANY: u8 = 2;

impl Protocol {
    /// The commands that are possible.
    pub(crate) fn commands(&self, state: &State, actions: &mut Vec<Action>) {
        let (job, left) = (&state.store.job, &state.left);
        let early = state.restored && !state.raised && !self.scope.early_commands;
        if left.cancels > 0 && !early && self.can_cancel(state) {
            actions.push(Action::Cancel);
        }
        if left.retries > 0 && !early && self.can_retry(state) {
            actions.push(Action::Retry);
        }
        if left.prunes > 0 && !early {
            self.prunes(state, actions);
        }
        if left.restores > 0 && state.backup.is_none() {
            actions.push(Action::Backup);
        }
        let row_missing = state.ledger_pruned && !self.scope.prune_before_restore;
        if left.restores > 0 && state.backup.is_some() && !row_missing {
            actions.push(Action::Restore);
        }
        let unknown = job.status == JobStatus::Paused && state.has_unknown_rows();
        if state.restored && (!state.raised || unknown) {
            actions.push(Action::AfterRestore);
        }
        // The message of a job with unknown chunks asks for `--after-restore`.
        if job.status == JobStatus::Paused && !unknown {
            actions.push(Action::Resume);
        }
    }

    fn can_cancel(&self, state: &State) -> bool {
        let job = &state.store.job;
        match job.status {
            JobStatus::Live | JobStatus::Paused => true,
            JobStatus::Failed => self.scope.redrive && !job.closed,
            JobStatus::Completed | JobStatus::Cancelled => false,
        }
    }

    fn can_retry(&self, state: &State) -> bool {
        let job = &state.store.job;
        let closed = job.closed || job.removed;
        let released = self.scope.redrive && job.open == 0;
        job.status == JobStatus::Failed && !closed && !released
    }

    /// The steps of the retention, in their order.
    fn prunes(&self, state: &State, actions: &mut Vec<Action>) {
        let job = &state.store.job;
        if !job.has_ended() || job.removed {
            return;
        }
        let failed = job.status == JobStatus::Failed;
        let unsettled = self.scope.redrive && failed && job.open > 0;
        if failed && !job.closed && !unsettled && self.has(Clause::CloseBeforePrune) {
            actions.push(Action::Close);
            return;
        }
        if state.ledger_pruned {
            actions.push(Action::RemoveChunks);
            return;
        }
        actions.push(Action::PruneLedger);
    }

    pub(crate) fn cancel(&self, state: &mut State) {
        state.left.cancels -= 1;
        self.cancel_job(state);
    }

    fn cancel_job(&self, state: &mut State) {
        let job = &mut state.store.job;
        job.status = JobStatus::Cancelled;
        for chunk in &mut state.store.chunks {
            // Never leased: it needs no fence.
            if chunk.status == ChunkStatus::Pending && chunk.lease.epoch == 0 {
                chunk.status = ChunkStatus::Cancelled;
                job.open -= 1;
            }
        }
        self.advance(state);
    }

    pub(crate) fn retry(&self, state: &mut State) {
        state.left.retries -= 1;
        let job = &mut state.store.job;
        job.status = JobStatus::Live;
        for chunk in &mut state.store.chunks {
            if chunk.status == ChunkStatus::Failed {
                (chunk.status, chunk.ended_by) = (ChunkStatus::Pending, None);
                job.open += 1;
            }
        }
        self.advance(state);
    }

    pub(crate) fn prune_ledger(&self, state: &mut State) {
        state.ledger.iter_mut().for_each(|row| *row = None);
        state.ledger_pruned = true;
    }

    pub(crate) fn remove_chunks(&self, state: &mut State) {
        state.left.prunes -= 1;
        state.store.job.removed = true;
    }

    pub(crate) fn restore(&self, state: &mut State) {
        state.left.restores -= 1;
        if let Some(backup) = state.backup.take() {
            (state.store, state.restored) = (backup, true);
        }
        if self.scope.stopped_before_restore {
            state.processes.iter_mut().for_each(|process| *process = Process::IDLE);
            state.in_flight.clear();
        }
    }

    /// `--after-restore`: raises the epochs of the chunks to those of their ledger rows.
    pub(crate) fn after_restore(&self, state: &mut State) {
        state.raised = true;
        // The ledger does not tell which items of the unknown chunks are done.
        if state.has_unknown_rows() && self.can_cancel(state) {
            self.cancel_job(state);
        }
        state.raised_quietly = state.is_idle() && state.in_flight.is_empty();
        if !self.has(Clause::RestoreRaisesEpochs) {
            return;
        }
        for (chunk, row) in state.store.chunks.iter_mut().zip(&state.ledger) {
            let ledger = row.map_or(0, |row| row.lease.epoch);
            if chunk.lease.epoch < ledger {
                // The row keeps its own nonce, which no lease of the ledger's epoch has.
                chunk.lease = Lease { epoch: ledger, nonce: UNLIKE_ANY };
            }
        }
    }
}
