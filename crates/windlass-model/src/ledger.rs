//! The ledger's rules: how a fence and a commit change a row beside the user's data.

use crate::clause::Clause;
use crate::process::break_connection;
use crate::protocol::Protocol;
use crate::state::{ChunkStatus, Commit, Flushed, Lease, Range, Row, State};

impl Protocol {
    /// Raises the row of a chunk to a lease and returns it; `None` if the row refuses the lease.
    pub(crate) fn fence(
        &self,
        state: &mut State,
        chunk: u8,
        lease: Lease,
        range: Range,
    ) -> Option<Row> {
        let slot = &mut state.ledger[usize::from(chunk)];
        let Some(row) = slot else {
            *slot = Some(Row { lease, commits: 0, cursor: range.after, deferred: 0, dead: 0 });
            state.flush();
            return state.ledger[usize::from(chunk)];
        };
        let same_epoch = row.lease.epoch == lease.epoch;
        let same_nonce = row.lease.nonce == lease.nonce || !self.has(Clause::NonceInFence);
        let newer = row.lease.epoch < lease.epoch || !self.has(Clause::FenceRefusesOlderEpochs);
        if !(newer && !same_epoch || same_epoch && same_nonce) {
            return None;
        }
        if self.has(Clause::FenceRaisesRow) {
            row.lease = lease;
        }
        let row = *row;
        // A fence waits for the disk.
        state.flush();
        Some(row)
    }

    /// Makes the commits of a lease durable. False if the row is not as the lease committed it.
    pub(crate) fn flush(&self, state: &mut State, chunk: u8, row: Row) -> bool {
        let kept = state.ledger[usize::from(chunk)] == Some(row);
        state.flush();
        kept || !self.has(Clause::FlushComparesRow)
    }

    /// The user's database crashes and loses what is not on its disk. Its connections break.
    pub(crate) fn lose_commits(&self, state: &mut State) {
        if let Some(Flushed { ledger, effects }) = state.flushed.take() {
            (state.ledger, state.effects) = (ledger, effects);
        }
        state.processes.iter_mut().for_each(break_connection);
        // What was sent to its sessions ends with them.
        state.in_flight.clear();
    }

    /// Reads the row of a lease that has fenced it before; `None` if it has another lease or is gone.
    pub(crate) fn fence_again(&self, state: &mut State, chunk: u8, lease: Lease) -> Option<Row> {
        if !self.has(Clause::RecoveryCreatesNoRow) {
            let range = Range { after: 0, upto: self.scope.items };
            return self.fence(state, chunk, lease, range);
        }
        let row = state.ledger[usize::from(chunk)]?;
        let same_nonce = row.lease.nonce == lease.nonce || !self.has(Clause::NonceInFence);
        let own = row.lease.epoch == lease.epoch && same_nonce;
        (own || !self.has(Clause::FenceRaisesRow)).then_some(row)
    }

    /// The planned chunk that a chunk is a part of. Only the first is split.
    pub(crate) fn planned(&self, chunk: u8) -> usize {
        if chunk < self.scope.chunks { usize::from(chunk) } else { 0 }
    }

    /// Executes the transaction of a batch. Returns the row afterwards; `None` if the compare-and-set changes no row.
    pub(crate) fn commit(&self, state: &mut State, commit: &Commit) -> Option<Row> {
        let after = self.compare_and_set(state, commit)?;
        state.ledger[usize::from(commit.chunk)] = Some(after);
        self.apply_effect(state, commit);
        Some(after)
    }

    /// The row after the transaction, if the row is as the sender read it.
    fn compare_and_set(&self, state: &State, commit: &Commit) -> Option<Row> {
        let row = state.ledger[usize::from(commit.chunk)]?;
        let Commit { expected, after, .. } = commit;
        let epoch = row.lease.epoch == expected.lease.epoch || !self.has(Clause::EpochInCommit);
        let nonce = row.lease.nonce == expected.lease.nonce || !self.has(Clause::NonceInCommit);
        let progress = match (self.has(Clause::CommitsInCommit), self.has(Clause::CommitsCounted)) {
            (false, _) => true,
            (true, true) => row.commits == expected.commits,
            // The cursor instead of the number of commits.
            (true, false) => row.cursor == expected.cursor,
        };
        (epoch && nonce && progress).then_some(Row { lease: row.lease, ..*after })
    }

    /// Half of a transaction: what is left when the effects, the cursor and deferred items are separate.
    pub(crate) fn commit_half(&self, state: &mut State, commit: &Commit) {
        let Some(after) = self.compare_and_set(state, commit) else { return };
        if !self.has(Clause::EffectWithLedger) {
            self.apply_effect(state, commit);
        }
        if !self.has(Clause::DeferredWithLedger) {
            let row = &mut state.ledger[usize::from(commit.chunk)];
            *row = row.map(|row| Row { deferred: row.deferred, ..after });
            self.apply_effect(state, commit);
        }
    }

    fn apply_effect(&self, state: &mut State, commit: &Commit) {
        let Some(item) = commit.effect else { return };
        state.effects[self.planned(commit.chunk)][usize::from(item)] += 1;
        let Some(row) = state.chunk(commit.chunk) else { return };
        // A restored store believes a lease that it had forgotten. If a process of the time before ends a chunk with
        // it, leases that were issued later may still commit: the reason to stop all processes first.
        if state.restored && row.ended_by.is_some_and(|lease| lease.nonce == 0) {
            return;
        }
        // A lease that fails its chunk may have a commit in flight, which the ledger records. A redrive must not:
        // the letters of unfinished items are released.
        state.late_effect |= match row.status {
            ChunkStatus::Cancelled => true,
            ChunkStatus::Failed => self.scope.redrive || row.ended_by != Some(commit.sender),
            _ => false,
        };
    }
}
