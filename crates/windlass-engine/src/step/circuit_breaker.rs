//! A circuit breaker: stops calling a step that only fails, so that its items do not all become dead
//! letters.

use super::{StepBatch, StepError};
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use windlass_core::ItemError;

/// Decides whether a step may be called. Shared by all slots of the process.
#[derive(Default)]
pub(super) struct CircuitBreaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Single items that failed since the last success or opening.
    failures: u32,
    /// Openings since the last success.
    openings: u32,
    /// Whether a batch has succeeded since it last opened.
    has_succeeded: bool,
    open_until: Option<Instant>,
    reason: String,
}

/// Single items that may fail in a row before the circuit opens.
const MAX_FAILURES: u32 = 16;
/// Openings without any success before the job is paused: about half a minute.
const MAX_OPENINGS: u32 = 5;
/// How long the circuit is open the first time. The time doubles with each opening.
const MIN_OPEN_TIME: Duration = Duration::from_secs(1);
const MAX_OPEN_TIME: Duration = Duration::from_secs(60);

impl CircuitBreaker {
    /// Returns [`StepError::Unavailable`] while the circuit is open.
    pub(super) fn check(&self) -> Result<(), StepError> {
        let state = self.state.lock();
        match state.open_for() {
            Some(wait) => Err(StepError::Unavailable { reason: state.reason.clone(), wait }),
            None => Ok(()),
        }
    }

    /// Whether the circuit was open and nothing has succeeded since. Calls are then not retried.
    pub(super) fn is_half_open(&self) -> bool {
        self.state.lock().openings > 0
    }

    /// The step has processed a batch, or works and has rejected it. Closes the circuit.
    pub(super) fn record_success(&self) {
        *self.state.lock() = State { has_succeeded: true, ..State::default() };
    }

    /// A batch failed. A batch of several items is halved and does not count. A single item fails, but
    /// many in a row open the circuit: the step itself may be broken. Each time it closes again it
    /// allows more failures, so that a run of bad items is passed. After [`MAX_OPENINGS`] without any
    /// success the job is paused. An item that failed before does not count while other items succeed.
    pub(super) fn record_failure(&self, batch: &StepBatch, error: ItemError) -> StepError {
        let mut state = self.state.lock();
        let known_bad =
            state.has_succeeded && batch.items.first().is_some_and(|item| item.attempt > 1);
        if batch.items.len() > 1 || known_bad {
            return StepError::Batch(error);
        }
        state.failures += 1;
        let limit = if state.openings == 0 { MAX_FAILURES } else { 1 << state.openings.min(10) };
        if state.failures < limit {
            return StepError::Batch(error);
        }
        let reason = format!("the step failed repeatedly; last error: {}", error.message);
        if state.openings >= MAX_OPENINGS {
            *state = State::default();
            return StepError::Fatal(reason);
        }
        state.open(reason, None);
        StepError::Batch(error)
    }

    /// Opens the circuit: the step is down, or asks to wait this long.
    pub(super) fn open(&self, reason: String, wait: Option<Duration>) -> StepError {
        self.state.lock().open(reason, wait)
    }
}

impl State {
    /// How much longer the circuit is open; `None` if it is closed.
    fn open_for(&self) -> Option<Duration> {
        self.open_until?.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Opens for longer each time. Slots that fail at the same time count as one opening.
    fn open(&mut self, reason: String, wait: Option<Duration>) -> StepError {
        let open_for = self.open_for();
        let backoff = (MIN_OPEN_TIME * (1 << self.openings.min(6))).min(MAX_OPEN_TIME);
        let wait = open_for.unwrap_or(backoff).max(wait.unwrap_or_default());
        self.openings += u32::from(open_for.is_none());
        self.failures = 0;
        self.has_succeeded = false;
        self.open_until = Some(Instant::now() + wait);
        self.reason = reason.clone();
        StepError::Unavailable { reason, wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepItem;
    use windlass_core::{JobType, Key, Record};

    /// A batch with this number of items, all at this attempt.
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
        StepBatch { items: vec![item; items], ..StepBatch::probe(&job_type, None) }
    }

    fn fail(circuit: &CircuitBreaker, items: usize) {
        let failed = circuit.record_failure(&batch(items, 1), ItemError::transient("no answer"));
        assert!(matches!(failed, StepError::Batch(_)), "{failed:?}");
    }

    /// Ends the time for which the circuit is open.
    fn expire(circuit: &CircuitBreaker) {
        circuit.state.lock().open_until = None;
    }

    #[test]
    fn failed_batches_are_always_halved_and_single_items_open_the_circuit() {
        let circuit = CircuitBreaker::default();
        (0..1000).for_each(|_| fail(&circuit, 2));
        let mut given_up = Vec::new();
        for _ in 0..5 {
            let mut items = 0;
            while circuit.check().is_ok() {
                fail(&circuit, 1);
                items += 1;
            }
            given_up.push(items);
            expire(&circuit);
        }
        assert_eq!(given_up, [MAX_FAILURES, 2, 4, 8, 16]);
        // After too many openings without success the job is paused.
        let last =
            (0..).map(|_| circuit.record_failure(&batch(1, 1), ItemError::transient("no answer")));
        let mut last = last.skip_while(|failed| matches!(failed, StepError::Batch(_)));
        assert!(matches!(last.next(), Some(StepError::Fatal(why)) if why.contains("no answer")));
    }

    #[test]
    fn retried_items_do_not_count_while_others_succeed() {
        let circuit = CircuitBreaker::default();
        circuit.record_success();
        for _ in 0..10 * MAX_FAILURES {
            let failed = circuit.record_failure(&batch(1, 2), ItemError::transient("no answer"));
            assert!(matches!(failed, StepError::Batch(_)));
        }
        assert!(circuit.check().is_ok());
        circuit.open("down".into(), None);
        expire(&circuit);
        fail(&circuit, 1);
        fail(&circuit, 1);
        assert!(circuit.check().is_err());
    }

    #[test]
    fn a_success_between_failures_keeps_the_circuit_closed() {
        let circuit = CircuitBreaker::default();
        for _ in 0..10 * MAX_FAILURES {
            fail(&circuit, 1);
            circuit.record_success();
        }
        assert!(!circuit.is_half_open());
    }

    #[test]
    fn simultaneous_failures_count_as_one_opening() {
        let circuit = CircuitBreaker::default();
        for _ in 0..4 {
            let StepError::Unavailable { wait, .. } = circuit.open("down".into(), None) else {
                panic!()
            };
            assert!(wait <= MIN_OPEN_TIME);
        }
        assert_eq!(circuit.state.lock().openings, 1);
    }

    #[test]
    fn the_open_time_doubles_and_is_at_least_the_requested_wait() {
        let circuit = CircuitBreaker::default();
        let wait = |asked: u64| {
            expire(&circuit);
            let asked = Some(Duration::from_secs(asked));
            let StepError::Unavailable { wait, .. } = circuit.open("down".into(), asked) else {
                panic!()
            };
            wait.as_secs()
        };
        assert_eq!([wait(0), wait(0), wait(0), wait(30), wait(0)], [1, 2, 4, 30, 16]);
    }
}
