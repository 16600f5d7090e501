//! What must hold in every state, and what must happen in some state, so that the check is not empty.

use stateright::{Model, Property};

use crate::protocol::Protocol;
use crate::state::{ChunkStatus, JobStatus, State};

/// More steps than any job needs within the scopes.
const MOST_STEPS: usize = 100;

pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always("each effect at most once", |_, state: &State| at_most_once(state)),
        Property::always("COMPLETED means done", |_, state: &State| completed_means_done(state)),
        Property::always("no effect after the end of a chunk", |_, state: &State| {
            !state.late_effect
        }),
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
fn at_most_once(state: &State) -> bool {
    state.effects.iter().zip(&state.ledger).all(|(effects, row)| {
        let dead = row.map_or(0, |row| row.dead);
        effects.iter().enumerate().all(|(item, effects)| *effects + (dead >> item & 1) <= 1)
    })
}

/// Every item of a completed chunk has its effect, or a dead letter in the store.
fn completed_means_done(state: &State) -> bool {
    let job = state.store.job.status == JobStatus::Completed;
    state.store.chunks.iter().zip(&state.effects).all(|(chunk, effects)| {
        let done = effects
            .iter()
            .enumerate()
            .all(|(item, effects)| *effects + (chunk.letters >> item & 1) == 1);
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
