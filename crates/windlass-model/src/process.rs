//! The steps of a process: which are possible in its phase, and what each does.

use crate::action::Action;
use crate::clause::Clause;
use crate::protocol::Protocol;
use crate::state::{
    ChunkStatus, Commit, JobStatus, Outcome, Phase, Process, Range, Row, State, Statement,
};
use crate::store::{LeaseStatus, expire};

impl Protocol {
    /// The steps that a process takes when nothing fails.
    pub(crate) fn steps(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let process = &state.processes[index];
        match process.phase {
            Phase::Idle => self.leases(state, index, actions),
            Phase::Leased => actions.push(Action::Fence(index)),
            Phase::Refused => actions.push(Action::HandleRefusedFence(index)),
            Phase::Fenced(_) => actions.push(Action::Confirm(index)),
            Phase::Working(row) => self.next_batch(state, index, row, actions),
            Phase::Sent(commit, copy) => {
                actions.push(Action::Execute(Statement::Commit(commit, copy)));
            }
            Phase::Broken(_) => actions.push(Action::FenceAgain(index)),
            Phase::Refenced(_) => actions.push(Action::ConfirmAgain(index)),
            Phase::Settling(_) => actions.push(Action::FenceToSettle(index)),
            Phase::Settled(_) => actions.push(Action::CommitToSettle(index)),
            Phase::Failing(_) => {
                actions.push(Action::EndFailed { process: index, fail_job: false });
                if self.scope.chunks > 1 {
                    actions.push(Action::EndFailed { process: index, fail_job: true });
                }
            }
            Phase::Flushed(row) if row.dead != 0 && self.has(Clause::LettersBeforeEnd) => {
                actions.push(Action::CopyDeadLetters(index));
            }
            Phase::Flushed(_) | Phase::Copied(_) => actions.push(Action::Complete(index)),
            Phase::Counting => actions.push(Action::Count(index)),
            Phase::LeasedToCancel if !self.has(Clause::CancelFences) => {
                actions.push(Action::EndCancelled(index));
            }
            Phase::LeasedToCancel => actions.push(Action::FenceToCancel(index)),
            Phase::FencedToCancel => actions.push(Action::EndCancelled(index)),
        }
    }

    fn leases(&self, state: &State, process: usize, actions: &mut Vec<Action>) {
        let job = &state.store.job;
        for chunk in state.chunk_numbers() {
            let row = &state.store.chunks[usize::from(chunk)];
            match job.status {
                _ if job.removed => {}
                JobStatus::Live if row.status == ChunkStatus::Pending => {
                    actions.push(Action::Lease { process, chunk });
                }
                JobStatus::Cancelled if self.can_lease_to_cancel(state, chunk) => {
                    actions.push(Action::LeaseCancelled { process, chunk });
                }
                _ => {}
            }
        }
    }

    /// The next batch, or the end of the chunk.
    fn next_batch(&self, state: &State, index: usize, row: Row, actions: &mut Vec<Action>) {
        if self.lease_status(state, &state.processes[index]) != LeaseStatus::Held {
            actions.push(Action::HandBack(index));
        }
        let process = &state.processes[index];
        if self.can_split(state, process, row) {
            actions.push(Action::Split(index));
        }
        if row.cursor < process.range.upto && !process.splits {
            actions.push(Action::SendBatch(index, Outcome::Done));
            if state.left.deferred > 0 {
                actions.push(Action::SendBatch(index, Outcome::Deferred));
            }
        } else if row.deferred != 0 && !process.splits {
            actions.push(Action::SendBatch(index, Outcome::Done));
            if state.left.dead > 0 {
                actions.push(Action::SendBatch(index, Outcome::Dead));
            }
        } else if self.flushes() {
            actions.push(Action::Flush(index));
        } else if row.dead != 0 && self.has(Clause::LettersBeforeEnd) {
            actions.push(Action::CopyDeadLetters(index));
        } else {
            actions.push(Action::Complete(index));
        }
    }

    /// Whether a process may end its chunk at the cursor: some items are behind it, the last commit is known, and no item
    /// is deferred.
    fn can_split(&self, state: &State, process: &Process, row: Row) -> bool {
        let Range { after, upto } = process.range;
        let inside = after < row.cursor && row.cursor < upto;
        let known = process.acknowledged || !self.has(Clause::SplitAcknowledged);
        let complete = row.deferred == 0 || !self.has(Clause::SplitWithoutDeferred);
        state.left.splits > 0 && !process.splits && inside && known && complete
    }

    /// Whether ends wait until commits are on the disk. Left out where the disk loses nothing.
    fn flushes(&self) -> bool {
        self.scope.budget.data_crashes > 0 && self.has(Clause::FlushBeforeEnd)
    }

    /// What can go wrong for a process.
    pub(crate) fn faults(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let (phase, left) = (&state.processes[index].phase, &state.left);
        if *phase == Phase::Idle {
            return;
        }
        if left.crashes > 0 {
            actions.push(Action::Crash(index));
        }
        match phase {
            Phase::Leased => {
                if left.unanswered > 0 {
                    actions.push(Action::FenceUnanswered(index));
                }
                if left.failures > 0 && !self.has(Clause::FailOnlyFenced) {
                    actions.push(Action::FailUnfenced(index));
                }
            }
            Phase::Working(_) if left.failures > 0 => {
                actions.push(Action::Fail { process: index });
            }
            Phase::Sent(commit, copy) => {
                if left.unanswered > 0 {
                    actions.push(Action::BreakConnection(index));
                    let halves =
                        self.has(Clause::EffectWithLedger) && self.has(Clause::DeferredWithLedger);
                    if !halves {
                        actions.push(Action::ExecuteHalf(Statement::Commit(*commit, *copy)));
                    }
                }
                // The chunk's timeout ends while a batch is in flight.
                if left.failures > 0 {
                    actions.push(Action::Fail { process: index });
                }
            }
            _ => {}
        }
        let completes =
            matches!(phase, Phase::Copied(_)) || self.is_at_end(state, index) == Some(true);
        if completes && left.unanswered > 0 {
            actions.push(Action::CompleteUnanswered(index));
            if state.processes[index].splits && !self.has(Clause::SplitInOneTransaction) {
                actions.push(Action::EndHalfSplit(index));
            }
        }
    }

    fn is_at_end(&self, state: &State, index: usize) -> Option<bool> {
        let row = match state.processes[index].phase {
            Phase::Working(row) if !self.flushes() => row,
            Phase::Flushed(row) => row,
            _ => return None,
        };
        let copied = row.dead == 0 || !self.has(Clause::LettersBeforeEnd);
        let process = &state.processes[index];
        let at_end = row.cursor == process.range.upto && row.deferred == 0;
        Some((at_end || process.splits) && copied)
    }

    /// Takes one step of a process.
    pub(crate) fn step(&self, state: &mut State, action: Action) {
        match action {
            Action::Lease { process, chunk } => self.lease(state, process, chunk, false),
            Action::LeaseCancelled { process, chunk } => self.lease(state, process, chunk, true),
            Action::Fence(index) => self.fence_leased(state, index),
            Action::FenceUnanswered(index) => {
                state.left.unanswered -= 1;
                let process = state.processes[index];
                let fence = Statement::Fence(process.chunk, process.lease, process.range);
                state.in_flight.insert(fence);
                self.release(state, &process);
                state.processes[index] = Process::IDLE;
            }
            Action::HandleRefusedFence(index) => self.handle_refused_fence(state, index),
            Action::Confirm(index) => self.confirm(state, index, Clause::ConfirmAfterFence),
            Action::ConfirmAgain(index) => self.confirm(state, index, Clause::RecoveryConfirms),
            Action::SendBatch(index, outcome) => self.send_batch(state, index, outcome),
            Action::BreakConnection(index) => {
                state.left.unanswered -= 1;
                break_connection(&mut state.processes[index]);
            }
            Action::FenceAgain(index) => {
                let process = state.processes[index];
                let Phase::Broken(known) = process.phase else { return };
                let row = self.fence_again(state, process.chunk, process.lease);
                let row = self.keep_unless_lost(state, &process, known, row);
                let found = row.is_some_and(|row| row.commits > known);
                state.processes[index].acknowledged = found && self.scope.budget.splits > 0;
                self.goes_to(state, index, row.map(Phase::Refenced));
            }
            Action::HandBack(index) => {
                let process = state.processes[index];
                self.release(state, &process);
                state.processes[index] = Process::IDLE;
            }
            Action::Flush(index) => {
                let process = state.processes[index];
                let Phase::Working(row) = process.phase else { return };
                let kept = self.flush(state, process.chunk, row);
                if !kept {
                    self.release(state, &process);
                }
                self.goes_to(state, index, kept.then_some(Phase::Flushed(row)));
            }
            Action::CopyDeadLetters(index) => {
                let process = state.processes[index];
                let (Phase::Working(row) | Phase::Flushed(row)) = process.phase else { return };
                let valid = self.is_leased(state, &process);
                if valid {
                    state.store.chunks[usize::from(process.chunk)].letters |= row.dead;
                }
                self.goes_to(state, index, valid.then_some(Phase::Copied(row)));
            }
            Action::Split(index) => {
                state.left.splits -= 1;
                state.processes[index].splits = true;
            }
            Action::Complete(index) if state.processes[index].splits => {
                self.end_with_split(state, index, false);
                state.processes[index] = Process::IDLE;
            }
            Action::EndHalfSplit(index) => {
                state.left.unanswered -= 1;
                self.end_with_split(state, index, true);
                state.processes[index] = Process::IDLE;
            }
            Action::Complete(index) => self.end(state, index, ChunkStatus::Completed, false),
            Action::CompleteUnanswered(index) if state.processes[index].splits => {
                state.left.unanswered -= 1;
                self.end_with_split(state, index, false);
            }
            Action::CompleteUnanswered(index) => {
                state.left.unanswered -= 1;
                let process = state.processes[index];
                self.end_chunk(state, &process, ChunkStatus::Completed, false);
            }
            Action::Count(index) => {
                self.count_ended(state);
                state.processes[index] = Process::IDLE;
            }
            Action::Fail { process } => {
                state.left.failures -= 1;
                let phase = match state.processes[process].phase {
                    Phase::Working(row) if self.scope.redrive => Phase::Settling(row.commits),
                    Phase::Sent(sent, _) if self.scope.redrive => {
                        Phase::Settling(sent.expected.commits)
                    }
                    Phase::Working(row) => Phase::Failing(self.flushes().then_some(row)),
                    Phase::Sent(sent, _) => Phase::Failing(self.flushes().then_some(sent.expected)),
                    _ => Phase::Failing(None),
                };
                state.processes[process].phase = phase;
            }
            Action::FailUnfenced(index) => {
                state.left.failures -= 1;
                state.processes[index].phase = Phase::Failing(None);
            }
            Action::FenceToSettle(index) => {
                let process = state.processes[index];
                let Phase::Settling(known) = process.phase else { return };
                let row = self.fence_again(state, process.chunk, process.lease);
                let row = self.keep_unless_lost(state, &process, known, row);
                let next = |row| match self.has(Clause::RedriveSettlesByCommit) {
                    true => Phase::Settled(row),
                    false => Phase::Failing(None),
                };
                self.goes_to(state, index, row.map(next));
            }
            Action::CommitToSettle(index) => {
                let process = state.processes[index];
                let Phase::Settled(row) = process.phase else { return };
                let empty = self.batch(&process, row, None, row);
                let committed = self.commit(state, &empty);
                let checked = committed.filter(|_| self.flushes());
                self.goes_to(state, index, committed.map(|_| Phase::Failing(checked)));
            }
            Action::EndFailed { process, fail_job } => {
                let failing = state.processes[process];
                match failing.phase {
                    Phase::Failing(Some(row)) if !self.flush(state, failing.chunk, row) => {
                        self.goes_to(state, process, None);
                    }
                    _ => self.end(state, process, ChunkStatus::Failed, fail_job),
                }
            }
            Action::FenceToCancel(index) => {
                let process = state.processes[index];
                let row = self.fence(state, process.chunk, process.lease, process.range);
                self.goes_to(state, index, row.map(|_| Phase::FencedToCancel));
            }
            Action::EndCancelled(index) => self.end(state, index, ChunkStatus::Cancelled, false),
            Action::Expire(chunk) => {
                if state.has_holder(chunk) {
                    state.left.slow -= 1;
                }
                expire(state, chunk);
            }
            Action::Crash(index) => {
                state.left.crashes -= 1;
                state.processes[index] = Process::IDLE;
            }
            _ => {}
        }
    }

    /// Goes to the next phase, or gives the chunk up, whose lease then expires.
    fn goes_to(&self, state: &mut State, index: usize, phase: Option<Phase>) {
        match phase {
            Some(phase) => state.processes[index].phase = phase,
            None => state.processes[index] = Process::IDLE,
        }
    }

    /// The row that a lease has fenced, unless it lost commits. The chunk is released then: a batch that this lease sent
    /// before would match the row again after as many commits.
    fn keep_unless_lost(
        &self,
        state: &mut State,
        process: &Process,
        known: u8,
        row: Option<Row>,
    ) -> Option<Row> {
        if row.is_some_and(|row| row.commits < known) && self.has(Clause::LossEndsLease) {
            self.release(state, process);
            return None;
        }
        row
    }

    fn fence_leased(&self, state: &mut State, index: usize) {
        let process = state.processes[index];
        let row = self.fence(state, process.chunk, process.lease, process.range);
        state.processes[index].phase = row.map_or(Phase::Refused, Phase::Fenced);
        let Range { after, upto } = process.range;
        let resumed = row.is_some_and(|row| after < row.cursor && row.cursor < upto);
        if resumed && self.has(Clause::RestoreFindsRest) && state.has_unknown_rows() {
            self.release(state, &process);
            if state.store.job.status == JobStatus::Live {
                state.store.job.status = JobStatus::Paused;
            }
            state.processes[index] = Process::IDLE;
        }
    }

    /// Ends the chunk of a process at its cursor.
    fn end_with_split(&self, state: &mut State, index: usize, half: bool) {
        let process = state.processes[index];
        let (Phase::Working(row) | Phase::Flushed(row) | Phase::Copied(row)) = process.phase else {
            return;
        };
        self.end_split(state, &process, row, half);
    }

    /// If the store confirms a lease whose fence was refused, the store was restored: the job is paused.
    fn handle_refused_fence(&self, state: &mut State, index: usize) {
        let process = state.processes[index];
        if self.lease_status(state, &process) == LeaseStatus::Held {
            state.valid_refused |= !state.restored || state.raised_quietly;
            self.release(state, &process);
            state.store.job.status = JobStatus::Paused;
        }
        state.processes[index] = Process::IDLE;
    }

    fn confirm(&self, state: &mut State, index: usize, clause: Clause) {
        let process = state.processes[index];
        let (Phase::Fenced(row) | Phase::Refenced(row)) = process.phase else { return };
        let status = match self.has(clause) {
            true => self.lease_status(state, &process),
            false => LeaseStatus::Held,
        };
        if status == LeaseStatus::HandBack {
            self.release(state, &process);
        }
        let held = status == LeaseStatus::Held;
        self.goes_to(state, index, held.then_some(Phase::Working(row)));
    }

    fn send_batch(&self, state: &mut State, index: usize, outcome: Outcome) {
        let process = state.processes[index];
        let Phase::Working(row) = process.phase else { return };
        let mut after = row;
        let item = if row.cursor < process.range.upto {
            after.cursor += 1;
            row.cursor
        } else {
            let first = row.deferred.trailing_zeros() as u8;
            after.deferred &= !(1 << first);
            first
        };
        match outcome {
            Outcome::Done => {}
            Outcome::Deferred => {
                state.left.deferred -= 1;
                after.deferred |= 1 << item;
            }
            Outcome::Dead => {
                state.left.dead -= 1;
                after.dead |= 1 << item;
            }
        }
        let effect = (outcome == Outcome::Done).then_some(item);
        let commit = self.batch(&process, row, effect, after);
        let mut copy = 0;
        while !state.in_flight.insert(Statement::Commit(commit, copy)) {
            copy += 1;
        }
        state.processes[index].phase = Phase::Sent(commit, copy);
    }

    fn batch(&self, process: &Process, row: Row, effect: Option<u8>, after: Row) -> Commit {
        let after = Row { commits: row.commits + 1, ..after };
        Commit { chunk: process.chunk, sender: process.lease, expected: row, after, effect }
    }

    /// Executes a statement that was sent. A process that waits for it gets the answer.
    pub(crate) fn execute(&self, state: &mut State, statement: Statement, half: bool) {
        let waiting = state.waiting(&statement);
        state.in_flight.remove(&statement);
        match statement {
            Statement::Fence(chunk, lease, range) => drop(self.fence(state, chunk, lease, range)),
            Statement::Commit(commit, _) if half => {
                state.left.unanswered -= 1;
                self.commit_half(state, &commit);
                if let Some(index) = waiting {
                    break_connection(&mut state.processes[index]);
                }
            }
            Statement::Commit(commit, _) => {
                let before = state.ledger[usize::from(commit.chunk)];
                let row = self.commit(state, &commit);
                if let Some(index) = waiting {
                    let process = state.processes[index];
                    let held = self.lease_status(state, &process) == LeaseStatus::Held;
                    let taken = before.is_none_or(|row| row.lease != process.lease);
                    let explained = state.restored && !state.raised_quietly;
                    state.valid_refused |= row.is_none() && held && taken && !explained;
                    state.processes[index].acknowledged = self.scope.budget.splits > 0;
                    self.goes_to(state, index, row.map(Phase::Working));
                }
            }
        }
    }

    fn end(&self, state: &mut State, index: usize, status: ChunkStatus, fail_job: bool) {
        let process = state.processes[index];
        let ended = self.end_chunk(state, &process, status, fail_job);
        let counting = ended && !self.has(Clause::CountWithEnd);
        self.goes_to(state, index, counting.then_some(Phase::Counting));
    }
}

/// The connection of a process breaks while it waits for the answer of a batch.
pub(crate) fn break_connection(process: &mut Process) {
    if let Phase::Sent(commit, _) = process.phase {
        process.phase = Phase::Broken(commit.expected.commits);
    }
}
