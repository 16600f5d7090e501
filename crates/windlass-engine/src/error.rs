//! What can go wrong in the engine.

use crate::step::StepError;
use std::sync::Arc;
use windlass_core::Problem;
use windlass_data::DataError;
use windlass_store::StoreError;

/// The result of a call to the engine.
pub type Result<T> = std::result::Result<T, EngineError>;

/// An engine error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The user's input cannot be served.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
    /// The user's database failed.
    #[error("{0}")]
    Data(DataError),
    /// The step could not work a batch.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A part or a report could not be written.
    #[error("{0}")]
    Parts(Arc<windlass_parts::Error>),
}

impl From<windlass_parts::Error> for EngineError {
    fn from(error: windlass_parts::Error) -> EngineError {
        EngineError::Parts(Arc::new(error))
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> EngineError {
        match error {
            StoreError::Problem(problem) => EngineError::Problem(problem),
            other => EngineError::Store(other),
        }
    }
}

impl From<DataError> for EngineError {
    fn from(error: DataError) -> EngineError {
        match error {
            DataError::Problem(problem) => EngineError::Problem(problem),
            other => EngineError::Data(other),
        }
    }
}
