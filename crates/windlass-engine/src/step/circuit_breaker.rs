//! Gives a step up for a while when nothing succeeds any more, instead of burning its items.

use super::{StepBatch, StepError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use windlass_core::ItemError;

/// Whether a step is to be tried at all. Shared by all slots of the process.
#[derive(Default)]
pub(super) struct CircuitBreaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Items that failed alone since the last success or opening.
    failures: u32,
    /// How often it has opened since the last success.
    openings: u32,
    /// Whether something has succeeded since it last opened.
    works: bool,
    /// Open until then.
    until: Option<Instant>,
    reason: String,
}

/// Items that fail alone, one after the other, until that is taken for more than their own fault.
const MOST_FAILURES: u32 = 16;
/// Rounds without any success after which it is of no use to go on alone: half a minute by then.
const MOST_OPENINGS: u32 = 5;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

impl CircuitBreaker {
    /// Refuses while it is open.
    pub(super) fn enter(&self) -> Result<(), StepError> {
        let state = self.state();
        match state.open_for() {
            Some(wait) => Err(StepError::Unavailable { reason: state.reason.clone(), wait }),
            None => Ok(()),
        }
    }

    /// Whether it was open and nothing has succeeded since: then one try tells enough.
    pub(super) fn is_doubtful(&self) -> bool {
        self.state().openings > 0
    }

    /// A batch was worked, or refused by somebody who is there.
    pub(super) fn succeeded(&self) {
        *self.state() = State { works: true, ..State::default() };
    }

    /// A batch failed: it is to be halved. An item that fails alone is given up, but not many in a
    /// row: then nothing may be right at all, and after some more rounds somebody must look. Each
    /// round gives up a few more, so that a stretch of bad items is passed. Items that have failed
    /// before tell nothing new where others succeed.
    pub(super) fn failed(&self, batch: &StepBatch, error: ItemError) -> StepError {
        let mut state = self.state();
        let known_bad = state.works && batch.items.first().is_some_and(|item| item.attempt > 1);
        if batch.items.len() > 1 || known_bad {
            return StepError::Batch(error);
        }
        state.failures += 1;
        let most = if state.openings == 0 { MOST_FAILURES } else { 1 << state.openings.min(10) };
        if state.failures < most {
            return StepError::Batch(error);
        }
        let reason = format!("nothing succeeds any more, the last failure: {}", error.message);
        if state.openings >= MOST_OPENINGS {
            *state = State::default();
            return StepError::Fatal(reason);
        }
        state.open(reason, None);
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
        let backoff = (SHORTEST * (1 << self.openings.min(6))).min(LONGEST);
        let wait = open_for.unwrap_or(backoff).max(wait.unwrap_or_default());
        self.openings += u32::from(open_for.is_none());
        self.failures = 0;
        self.works = false;
        self.until = Some(Instant::now() + wait);
        self.reason = reason.clone();
        StepError::Unavailable { reason, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepItem;
    use windlass_core::{JobType, Key, Record};

    /// A batch of so many items, at this attempt.
    fn batch(items: usize, attempt: u32) -> StepBatch {
        let item = StepItem {
            key: Key(Vec::new()),
            record: Record::new(Vec::new().into(), Vec::new()),
            attempt,
        };
        let job_type = serde_json::json!({
            "source": {}, "step": {"command": ["x"], "on_conflict": "retry"},
        });
        let job_type = JobType::from_json("JOB", job_type).unwrap();
        StepBatch { items: vec![item; items], ..StepBatch::question(&job_type, None) }
    }

    fn fail(circuit: &CircuitBreaker, items: usize) {
        let failed = circuit.failed(&batch(items, 1), ItemError::transient("no answer"));
        assert!(matches!(failed, StepError::Batch(_)), "{failed:?}");
    }

    /// Lets the time pass for which it is open.
    fn run_batch(circuit: &CircuitBreaker) {
        circuit.state().until = None;
    }

    #[test]
    fn batches_are_halved_however_many_fail_and_items_given_up_a_few_at_a_time() {
        let circuit = CircuitBreaker::default();
        (0..1000).for_each(|_| fail(&circuit, 2));
        let mut given_up = Vec::new();
        for _ in 0..5 {
            let mut items = 0;
            while circuit.enter().is_ok() {
                fail(&circuit, 1);
                items += 1;
            }
            given_up.push(items);
            run_batch(&circuit);
        }
        assert_eq!(given_up, [MOST_FAILURES, 2, 4, 8, 16]);
        // Nothing has succeeded for so long that somebody must look.
        let last = (0..).map(|_| circuit.failed(&batch(1, 1), ItemError::transient("no answer")));
        let mut last = last.skip_while(|failed| matches!(failed, StepError::Batch(_)));
        assert!(matches!(last.next(), Some(StepError::Fatal(why)) if why.contains("no answer")));
    }

    #[test]
    fn items_known_to_be_bad_do_not_count_where_others_succeed() {
        let circuit = CircuitBreaker::default();
        circuit.succeeded();
        for _ in 0..10 * MOST_FAILURES {
            let failed = circuit.failed(&batch(1, 2), ItemError::transient("no answer"));
            assert!(matches!(failed, StepError::Batch(_)));
        }
        assert!(circuit.enter().is_ok());
        circuit.open("down".into(), None);
        run_batch(&circuit);
        fail(&circuit, 1);
        fail(&circuit, 1);
        assert!(circuit.enter().is_err());
    }

    #[test]
    fn one_success_between_failures_keeps_it_closed() {
        let circuit = CircuitBreaker::default();
        for _ in 0..10 * MOST_FAILURES {
            fail(&circuit, 1);
            circuit.succeeded();
        }
        assert!(!circuit.is_doubtful());
    }

    #[test]
    fn slots_that_find_out_together_open_it_once() {
        let circuit = CircuitBreaker::default();
        for _ in 0..4 {
            let StepError::Unavailable { wait, .. } = circuit.open("down".into(), None) else {
                panic!()
            };
            assert!(wait <= SHORTEST);
        }
        assert_eq!(circuit.state().openings, 1);
    }

    #[test]
    fn waits_grow_and_are_never_shorter_than_their_own_whatever_is_asked_for() {
        let circuit = CircuitBreaker::default();
        let wait = |asked: u64| {
            run_batch(&circuit);
            let asked = Some(Duration::from_secs(asked));
            let StepError::Unavailable { wait, .. } = circuit.open("down".into(), asked) else {
                panic!()
            };
            wait.as_secs()
        };
        assert_eq!([wait(0), wait(0), wait(0), wait(30), wait(0)], [1, 2, 4, 30, 16]);
    }
}
