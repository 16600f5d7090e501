//! What must hold in every state, and what must happen in some state, so that the check is not empty.

use stateright::{Model, Property};

use crate::protocol::Protocol;
use crate::state::{ChunkStatus, JobStatus, State};

/// More steps than any job needs within the scopes.
const MOST_STEPS: usize = 100;

pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always("each effect at most once", at_most_once),
        Property::always("COMPLETED means done", completed_means_done),
        Property::always("no effect after the end of a chunk", |_, state: &State| {
            !state.late_effect
        }),
        Property::always("the chunks cover each item once", covers_each_item_once),
        Property::always("every state is left", is_left),
        Property::always("a valid lease is never refused", |_, state: &State| !state.valid_refused),
        Property::sometimes("a job completes", |_, state: &State| has(state, JobStatus::Completed)),
        Property::sometimes("a job fails", |model: &Protocol, state: &State| {
            model.scope.budget.failures == 0 || has(state, JobStatus::Failed)
        }),
        Property::sometimes(
            "a job is cancelled in the middle",
            |model: &Protocol, state: &State| {
                let begun = state.ledger.iter().any(|row| row.is_some_and(|row| row.cursor > 0));
                model.scope.budget.cancels == 0 || has(state, JobStatus::Cancelled) && begun
            },
        ),
        Property::sometimes("a chunk is split", |model: &Protocol, state: &State| {
            model.scope.budget.splits == 0
                || has(state, JobStatus::Completed)
                    && state.store.chunks.len() > usize::from(model.scope.chunks)
        }),
        Property::sometimes("a job is pruned", |model: &Protocol, state: &State| {
            model.scope.budget.prunes == 0 || state.store.job.removed
        }),
        Property::sometimes(
            "a restored store completes the job",
            |model: &Protocol, state: &State| {
                model.scope.budget.restores == 0
                    || state.restored && has(state, JobStatus::Completed)
            },
        ),
    ]
}

fn has(state: &State, status: JobStatus) -> bool {
    state.store.job.status == status && state.store.job.has_ended()
}

/// No item has two effects, or an effect and a dead letter.
fn at_most_once(model: &Protocol, state: &State) -> bool {
    state.effects.iter().enumerate().all(|(planned, effects)| {
        let rows =
            state.ledger.iter().zip(0..).filter(|(_, chunk)| model.planned(*chunk) == planned);
        let dead = rows.fold(0, |dead, (row, _)| dead | row.map_or(0, |row| row.dead));
        effects.iter().enumerate().all(|(item, effects)| *effects + (dead >> item & 1) <= 1)
    })
}

/// Each item is in one chunk, also after a split.
fn covers_each_item_once(model: &Protocol, state: &State) -> bool {
    (0..usize::from(model.scope.chunks)).all(|planned| {
        let chunks = state.store.chunks.iter().zip(0..);
        let mut ranges: Vec<_> = chunks
            .filter(|(_, number)| model.planned(*number) == planned)
            .map(|(chunk, _)| chunk.range)
            .collect();
        ranges.sort_unstable();
        let end =
            ranges.iter().try_fold(0, |end, range| (range.after == end).then_some(range.upto));
        end == Some(model.scope.items)
    })
}

/// Every item of a completed chunk has its effect, or a dead letter in the store.
fn completed_means_done(model: &Protocol, state: &State) -> bool {
    let job = state.store.job.status == JobStatus::Completed;
    state.store.chunks.iter().zip(0..).all(|(chunk, number)| {
        let effects = &state.effects[model.planned(number)];
        let done = (chunk.range.after..chunk.range.upto)
            .all(|item| effects[usize::from(item)] + (chunk.letters >> item & 1) == 1);
        let completed = chunk.status == ChunkStatus::Completed;
        done || !completed && !job
    })
}

/// If nothing fails from now on, the job ends and every process is idle.
fn is_left(model: &Protocol, state: &State) -> bool {
    let mut state = state.clone();
    for _ in 0..MOST_STEPS {
        let Some(step) = model.healthy_step(&state) else {
            return state.store.job.has_ended() && state.is_idle();
        };
        match model.next_state(&state, step) {
            Some(next) => state = next,
            None => return false,
        }
    }
    false
}
