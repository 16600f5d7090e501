//! The model: which actions are possible in a state, and the state after each.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::action::Action;
use crate::clause::Clause;
use crate::properties;
use crate::scope::Scope;
use crate::state::{
    Chunk, ChunkStatus, Flushed, Job, JobStatus, Lease, Phase, Process, Range, State, Store,
};

/// The commit protocol within a scope, with all of its clauses or without some.
#[derive(Clone, Debug)]
pub struct Protocol {
    pub(crate) scope: Scope,
    without: BTreeSet<Clause>,
}

impl Protocol {
    /// The protocol with all clauses.
    pub fn new(scope: Scope) -> Protocol {
        Protocol { scope, without: BTreeSet::new() }
    }

    /// The protocol without a clause.
    pub fn without(mut self, clause: Clause) -> Protocol {
        self.without.insert(clause);
        self
    }

    pub(crate) fn has(&self, clause: Clause) -> bool {
        !self.without.contains(&clause)
    }

    /// Faults, and statements that are executed although no process waits for them.
    fn faults_of_all(&self, state: &State, actions: &mut Vec<Action>) {
        for index in 0..state.processes.len() {
            self.faults(state, index, actions);
        }
        let orphans = state.in_flight.iter().filter(|sent| state.waiting(sent).is_none());
        actions.extend(orphans.map(|sent| Action::Execute(*sent)));
        let unsaved = |chunk: &Chunk| chunk.status == ChunkStatus::Completed && !chunk.durable;
        let may_lose = state.store.chunks.iter().any(unsaved) && !state.store.job.removed;
        if state.left.store_crashes > 0 && may_lose {
            actions.push(Action::StoreCrash);
        }
        let unflushed =
            |flushed: &Flushed| flushed.ledger != state.ledger || flushed.effects != state.effects;
        if state.left.data_crashes > 0 && state.flushed.as_ref().is_some_and(unflushed) {
            actions.push(Action::DataCrash);
        }
    }

    /// Leases that expire: those without a holder always do, others if their holder is too slow.
    fn expiries(&self, state: &State, actions: &mut Vec<Action>) {
        for chunk in state.chunk_numbers() {
            let processing =
                state.store.chunks[usize::from(chunk)].status == ChunkStatus::Processing;
            if processing && (!state.has_holder(chunk) || state.left.slow > 0) {
                actions.push(Action::Expire(chunk));
            }
        }
    }

    /// One step that is taken when nothing fails from now on and no operator interferes, except that a paused job is
    /// resumed as its message says.
    pub(crate) fn healthy_step(&self, state: &State) -> Option<Action> {
        let mut actions = Vec::new();
        for index in 0..state.processes.len() {
            if state.processes[index].phase != Phase::Idle {
                self.steps(state, index, &mut actions);
            }
        }
        let unheld = |chunk: &u8| {
            let row = &state.store.chunks[usize::from(*chunk)];
            row.status == ChunkStatus::Processing && !state.has_holder(*chunk)
        };
        if actions.is_empty() && !state.store.job.has_ended() {
            actions.extend(state.chunk_numbers().filter(unheld).map(Action::Expire));
            if state.store.job.status == JobStatus::Paused {
                let raise = state.restored && (!state.raised || state.has_unknown_rows());
                actions.push(if raise { Action::AfterRestore } else { Action::Resume });
            }
            self.steps(state, 0, &mut actions);
        }
        actions.first().copied()
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let Scope { chunks, items, processes, budget, .. } = self.scope;
        let chunk = Chunk {
            status: ChunkStatus::Pending,
            lease: Lease { epoch: 0, nonce: 0 },
            ending: false,
            durable: true,
            letters: 0,
            ended_by: None,
            range: Range { after: 0, upto: items },
            split_from: None,
        };
        let job = Job { status: JobStatus::Live, open: chunks, closed: false, removed: false };
        let chunks = usize::from(chunks);
        // The ledger keeps the rows of chunks that a restored store does not know.
        // Without a clause, a chunk may be split twice.
        let rows = chunks + 2 * usize::from(budget.splits);
        vec![State {
            store: Store { job, chunks: vec![chunk; chunks] },
            backup: None,
            restored: false,
            raised: false,
            raised_quietly: false,
            ledger: vec![None; rows],
            ledger_pruned: false,
            effects: vec![vec![0; usize::from(items)]; chunks],
            flushed: None,
            processes: vec![Process::IDLE; usize::from(processes)],
            in_flight: BTreeSet::new(),
            left: budget,
            late_effect: false,
            valid_refused: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let mut idle = false;
        for index in 0..state.processes.len() {
            // Idle processes are alike.
            let is_idle = state.processes[index].phase == Phase::Idle;
            if !(is_idle && idle) {
                self.steps(state, index, actions);
            }
            idle |= is_idle;
        }
        self.expiries(state, actions);
        self.faults_of_all(state, actions);
        self.commands(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Execute(statement) => self.execute(&mut state, statement, false),
            Action::ExecuteHalf(statement) => self.execute(&mut state, statement, true),
            Action::StoreCrash => {
                state.left.store_crashes -= 1;
                self.lose_writes(&mut state);
            }
            Action::DataCrash => {
                state.left.data_crashes -= 1;
                self.lose_commits(&mut state);
            }
            Action::Cancel => self.cancel(&mut state),
            Action::Retry => self.retry(&mut state),
            Action::Close => state.store.job.closed = true,
            Action::PruneLedger => self.prune_ledger(&mut state),
            Action::RemoveChunks => self.remove_chunks(&mut state),
            Action::Backup => state.backup = Some(state.store.clone()),
            Action::Restore => self.restore(&mut state),
            Action::AfterRestore => self.after_restore(&mut state),
            Action::Resume => {
                state.store.job.status = JobStatus::Live;
                self.advance(&mut state);
            }
            step => self.step(&mut state, step),
        }
        state.normalize();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        properties::all()
    }
}
