//! A second model: how the generation reveals a restored store when a process starts.
//!
//! It assumes that no process is in the middle of its start while the store is restored.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use GenerationState as State;

/// A clause of the check at start that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "`GenerationClause::says` describes each")]
pub enum GenerationClause {
    LedgerReadFirst,
    StoreWrittenFirst,
    EpochsRaisedFirst,
    GenerationChecked,
}

impl GenerationClause {
    /// All clauses.
    pub const ALL: [GenerationClause; 4] = [
        GenerationClause::LedgerReadFirst,
        GenerationClause::StoreWrittenFirst,
        GenerationClause::EpochsRaisedFirst,
        GenerationClause::GenerationChecked,
    ];

    /// What the clause says.
    pub fn says(self) -> &'static str {
        match self {
            GenerationClause::LedgerReadFirst => "the check reads the ledger first, then the store",
            GenerationClause::StoreWrittenFirst => {
                "a generation is committed in the store before it is recorded beside the ledger"
            }
            GenerationClause::EpochsRaisedFirst => {
                "`--after-restore` raises the epochs first and the generation last"
            }
            GenerationClause::GenerationChecked => "a process checks the generation when it starts",
        }
    }
}

/// How far a process is with its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    Stopped,
    /// One of the two generations is read.
    ReadOne(u8),
    Checked,
    /// One of the two generations is written.
    WroteOne(u8),
    Running,
    /// `--after-restore` has read the ledger's generation.
    Continuing(u8),
    /// `--after-restore` has done the first of its two steps.
    HalfContinued(u8),
}

/// One state: the two counts, the processes, and what happened before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GenerationState {
    store: u8,
    ledger: u8,
    backup: Option<u8>,
    restored: bool,
    /// The restored store lacks a generation that the ledger has.
    lost: bool,
    epochs_raised: bool,
    processes: Vec<Phase>,
    starts: u8,
    crashes: u8,
    refused_without_restore: bool,
    ran_on_restored_store: bool,
}

/// A step of a process, or what happens to the store.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "`GenerationAction::stands_for` names the functions")]
pub enum GenerationAction {
    Start(usize),
    Check(usize),
    Raise(usize),
    Record(usize),
    StartAfterRestore(usize),
    ContinueOne(usize),
    ContinueOther(usize),
    Crash(usize),
    Backup,
    Restore,
}

impl GenerationAction {
    /// The functions that an action stands for, as of [`crate::Action::stands_for`].
    pub fn stands_for(&self) -> &'static [&'static str] {
        match self {
            GenerationAction::Start(_) | GenerationAction::Check(_) => {
                &["windlass-engine/src/operate/after_restore.rs::check_generation"]
            }
            GenerationAction::Raise(_) | GenerationAction::Record(_) => &[
                "windlass-engine/src/operate/after_restore.rs::record_generation",
                "windlass-store/queries/postgres/raise_generation.sql",
                "windlass-connectors/sql/postgres/raise_generation.sql",
            ],
            GenerationAction::StartAfterRestore(_)
            | GenerationAction::ContinueOne(_)
            | GenerationAction::ContinueOther(_) => {
                &["windlass-engine/src/operate/after_restore.rs::continue_connection"]
            }
            GenerationAction::Crash(_) | GenerationAction::Backup | GenerationAction::Restore => {
                &[]
            }
        }
    }
}

/// The check at start: two processes that start four times, one crash, one restore.
#[derive(Clone, Debug, Default)]
pub struct Generations {
    without: BTreeSet<GenerationClause>,
}

impl Generations {
    /// The check without a clause.
    pub fn without(mut self, clause: GenerationClause) -> Generations {
        self.without.insert(clause);
        self
    }

    fn has(&self, clause: GenerationClause) -> bool {
        !self.without.contains(&clause)
    }

    fn read_one(&self, state: &mut GenerationState, index: usize) {
        let ledger_first = self.has(GenerationClause::LedgerReadFirst);
        let read = if ledger_first { state.ledger } else { state.store };
        state.processes[index] = Phase::ReadOne(read);
    }

    fn check(&self, state: &mut GenerationState, index: usize, first: u8) {
        let (ledger, store) = match self.has(GenerationClause::LedgerReadFirst) {
            true => (first, state.store),
            false => (state.ledger, first),
        };
        if ledger > store && self.has(GenerationClause::GenerationChecked) {
            state.refused_without_restore |= !state.restored;
            state.processes[index] = Phase::Stopped;
        } else {
            state.processes[index] = Phase::Checked;
        }
    }

    fn raise(&self, state: &mut GenerationState, index: usize) {
        let generation = state.store + 1;
        match self.has(GenerationClause::StoreWrittenFirst) {
            true => state.store = generation,
            false => state.ledger = state.ledger.max(generation),
        }
        state.processes[index] = Phase::WroteOne(generation);
    }

    fn record(&self, state: &mut GenerationState, index: usize, generation: u8) {
        match self.has(GenerationClause::StoreWrittenFirst) {
            true => state.ledger = state.ledger.max(generation),
            false => state.store = state.store.max(generation),
        }
        state.processes[index] = Phase::Running;
        state.ran_on_restored_store |= state.restored && state.lost && !state.epochs_raised;
    }

    /// One of the two steps of `--after-restore`.
    fn continue_after_restore(&self, state: &mut GenerationState, seen: u8, first: bool) {
        if first == self.has(GenerationClause::EpochsRaisedFirst) {
            state.epochs_raised = true;
        } else {
            state.store = state.store.max(seen) + 1;
        }
    }
}

impl Model for Generations {
    type State = GenerationState;
    type Action = GenerationAction;

    fn init_states(&self) -> Vec<GenerationState> {
        vec![GenerationState {
            store: 0,
            ledger: 0,
            backup: None,
            restored: false,
            lost: false,
            epochs_raised: false,
            processes: vec![Phase::Stopped; 2],
            starts: 4,
            crashes: 2,
            refused_without_restore: false,
            ran_on_restored_store: false,
        }]
    }

    fn actions(&self, state: &GenerationState, actions: &mut Vec<GenerationAction>) {
        for (index, phase) in state.processes.iter().enumerate() {
            match phase {
                Phase::Stopped if state.starts > 0 => {
                    actions.push(GenerationAction::Start(index));
                    if state.restored {
                        actions.push(GenerationAction::StartAfterRestore(index));
                    }
                }
                Phase::ReadOne(_) => actions.push(GenerationAction::Check(index)),
                Phase::Checked => actions.push(GenerationAction::Raise(index)),
                Phase::WroteOne(_) => actions.push(GenerationAction::Record(index)),
                Phase::Continuing(_) => actions.push(GenerationAction::ContinueOne(index)),
                Phase::HalfContinued(_) => actions.push(GenerationAction::ContinueOther(index)),
                Phase::Stopped | Phase::Running => {}
            }
            if *phase != Phase::Stopped && state.crashes > 0 {
                actions.push(GenerationAction::Crash(index));
            }
        }
        let settled = |phase: &Phase| matches!(phase, Phase::Stopped | Phase::Running);
        match state.backup {
            None if !state.restored => actions.push(GenerationAction::Backup),
            Some(_) if state.processes.iter().all(settled) => {
                actions.push(GenerationAction::Restore);
            }
            _ => {}
        }
    }

    fn next_state(
        &self,
        last: &GenerationState,
        action: GenerationAction,
    ) -> Option<GenerationState> {
        let mut state = last.clone();
        match action {
            GenerationAction::Start(index) => {
                state.starts -= 1;
                self.read_one(&mut state, index);
            }
            GenerationAction::StartAfterRestore(index) => {
                state.starts -= 1;
                state.processes[index] = Phase::Continuing(state.ledger);
            }
            GenerationAction::Crash(index) => {
                state.crashes -= 1;
                state.processes[index] = Phase::Stopped;
            }
            GenerationAction::Backup => state.backup = Some(state.store),
            GenerationAction::Restore => {
                state.store = state.backup.take()?;
                state.restored = true;
                state.lost = state.ledger > state.store;
            }
            GenerationAction::Check(index)
            | GenerationAction::Raise(index)
            | GenerationAction::Record(index)
            | GenerationAction::ContinueOne(index)
            | GenerationAction::ContinueOther(index) => match state.processes[index] {
                Phase::ReadOne(first) => self.check(&mut state, index, first),
                Phase::Checked => self.raise(&mut state, index),
                Phase::WroteOne(generation) => self.record(&mut state, index, generation),
                Phase::Continuing(seen) => {
                    self.continue_after_restore(&mut state, seen, true);
                    state.processes[index] = Phase::HalfContinued(seen);
                }
                Phase::HalfContinued(seen) => {
                    self.continue_after_restore(&mut state, seen, false);
                    self.read_one(&mut state, index);
                }
                Phase::Stopped | Phase::Running => {}
            },
        }
        state.processes.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Generations>> {
        vec![
            Property::always("no start is refused without a restore", |_, state: &State| {
                !state.refused_without_restore
            }),
            Property::always(
                "no process runs on a restored store unnoticed",
                |_, state: &State| !state.ran_on_restored_store,
            ),
            Property::sometimes("a process runs after --after-restore", |_, state: &State| {
                let running = |phase: &Phase| *phase == Phase::Running;
                state.lost && state.epochs_raised && state.processes.iter().any(running)
            }),
        ]
    }
}
