//! Why work on a chunk stops before its end, and how its claim ended.

use crate::EngineError;
use std::time::Duration;
use windlass_connectors::ConnectorError;

/// How a chunk's claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    Completed,
    HandedBack,
    Failed,
    Lost,
}

/// Why work on a chunk stops before its end.
pub(crate) enum StopReason {
    /// The job is paused or cancelled, or the process shuts down.
    HandBack,
    /// The lease is lost: another worker has the chunk.
    Lost,
    /// Only items are left that wait for their next try.
    Wait(Duration),
    /// The work failed.
    Failed(EngineError),
}

impl<E: Into<EngineError>> From<E> for StopReason {
    fn from(error: E) -> StopReason {
        match error.into() {
            EngineError::Data(ConnectorError::LeaseLost) => StopReason::Lost,
            error => StopReason::Failed(error),
        }
    }
}
