//! Gives a step up for a while when nothing succeeds any more, instead of burning its items.

use super::StepError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use windlass_core::ItemError;

/// Whether a step is to be tried at all. Shared by all slots of the process.
#[derive(Default)]
pub(super) struct Circuit {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Failures since the last success or opening.
    failures: u32,
    /// How often it has opened since the last success.
    openings: u32,
    /// Open until then.
    until: Option<Instant>,
    reason: String,
}

/// Failures in a row that cannot be single bad items any more: halving a batch of a million down to
/// its first item takes twenty.
const MOST_FAILURES: u32 = 32;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

impl Circuit {
    /// Refuses while it is open.
    pub(super) fn enter(&self) -> Result<(), StepError> {
        let state = self.state();
        match state.open_for() {
            Some(wait) => Err(StepError::Away { reason: state.reason.clone(), wait }),
            None => Ok(()),
        }
    }

    /// Whether it was open and nothing has succeeded since: then one try tells enough.
    pub(super) fn is_doubtful(&self) -> bool {
        self.state().openings > 0
    }

    /// A batch was worked, or refused by somebody who is there.
    pub(super) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// A batch of so many items failed: it is to be halved, unless too many have failed in a row.
    /// While in doubt, one item at a time is given up: where all that is left is bad, the job gets
    /// on, slowly enough for somebody to see it.
    pub(super) fn failed(&self, items: usize, error: ItemError) -> StepError {
        let mut state = self.state();
        state.failures += 1;
        let reason = format!("nothing succeeds any more, the last failure: {}", error.message);
        if state.openings > 0 && items <= 1 {
            state.open(reason, None);
        } else if state.openings == 0 && state.failures >= MOST_FAILURES {
            return state.open(reason, None);
        }
        StepError::Batch(error)
    }

    /// Whoever works the batches is down, or asks for this much time.
    pub(super) fn open(&self, reason: String, wait: Option<Duration>) -> StepError {
        self.state().open(reason, wait)
    }

    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_for(&self) -> Option<Duration> {
        self.until?.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Opens for longer each time. Slots that find out together open it once.
    fn open(&mut self, reason: String, wait: Option<Duration>) -> StepError {
        let open_for = self.open_for();
        let wait = match (open_for, wait) {
            (Some(open_for), wait) => open_for.max(wait.unwrap_or_default()),
            (None, Some(wait)) => wait,
            (None, None) => (SHORTEST * (1 << self.openings.min(6))).min(LONGEST),
        };
        self.openings += u32::from(open_for.is_none());
        self.failures = 0;
        self.until = Some(Instant::now() + wait);
        self.reason = reason.clone();
        StepError::Away { reason, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(circuit: &Circuit) -> StepError {
        circuit.failed(10, ItemError::transient("no answer"))
    }

    #[test]
    fn a_few_failures_are_bad_items_and_many_in_a_row_are_not() {
        let circuit = Circuit::default();
        for _ in 1..MOST_FAILURES {
            assert!(matches!(fail(&circuit), StepError::Batch(_)));
        }
        let StepError::Away { reason, wait } = fail(&circuit) else { panic!("still closed") };
        assert_eq!(wait, SHORTEST);
        assert!(reason.contains("no answer"), "{reason}");
        assert!(circuit.enter().is_err());
    }

    #[test]
    fn one_success_between_failures_keeps_it_closed() {
        let circuit = Circuit::default();
        for _ in 0..10 * MOST_FAILURES {
            assert!(matches!(fail(&circuit), StepError::Batch(_)));
            circuit.succeeded();
        }
        assert!(!circuit.is_doubtful());
    }

    #[test]
    fn in_doubt_one_item_is_given_up_at_a_time() {
        let circuit = Circuit::default();
        circuit.open("down".into(), Some(Duration::ZERO));
        for _ in 0..2 * MOST_FAILURES {
            assert!(matches!(fail(&circuit), StepError::Batch(_)), "a batch is halved");
            assert!(circuit.enter().is_ok());
        }
        let alone = circuit.failed(1, ItemError::transient("no answer"));
        assert!(matches!(alone, StepError::Batch(_)));
        assert!(circuit.enter().is_err());
    }

    #[test]
    fn slots_that_find_out_together_open_it_once() {
        let circuit = Circuit::default();
        for _ in 0..4 {
            let StepError::Away { wait, .. } = circuit.open("down".into(), None) else { panic!() };
            assert!(wait <= SHORTEST);
        }
        assert_eq!(circuit.state().openings, 1);
    }
}
