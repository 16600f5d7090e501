//! Why the work on a chunk stops early, and how the lease of a chunk ended.

use crate::EngineError;
use std::time::{Duration, Instant};

/// How the lease of a chunk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseOutcome {
    Completed,
    HandedBack,
    Failed,
    LeaseLost,
}

/// What a chunk outside of its slot waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrottleCause {
    /// Its database is over the limit of its health probe.
    Health,
    /// The rate limit of its job or job type. Time for the next batch is reserved from then on, if the
    /// reservation was possible.
    Rate(Option<Instant>),
}

/// Why the work on a chunk stops before its end.
pub(crate) enum StopReason {
    /// The job is paused or cancelled, or the process shuts down.
    HandBack,
    /// Another worker has leased the chunk.
    LeaseLost,
    /// Only deferred items are left, and none is due before this time.
    Wait(Duration),
    /// The next batch must wait for its rate limit or for the health of its database. The chunk keeps
    /// its lease and leaves its slot.
    Throttled(ThrottleCause),
    /// The work failed.
    Failed(EngineError),
}

impl<E: Into<EngineError>> From<E> for StopReason {
    fn from(error: E) -> StopReason {
        match error.into() {
            error if error.is_lease_lost() => StopReason::LeaseLost,
            error => StopReason::Failed(error),
        }
    }
}
