//! What can go wrong in the engine.

use crate::step::StepError;
#[cfg(feature = "export")]
use std::sync::Arc;
use windlass_connectors::ConnectorError;
use windlass_core::{ErrorKind, Problem};
use windlass_drivers::ErrorClass;
use windlass_store::StoreError;

/// The result of a call to the engine.
///
/// ```
/// async fn connect(config: windlass_core::Config) -> windlass_engine::Result<windlass_engine::Engine> {
///     windlass_engine::Engine::builder(config).connect().await
/// }
/// ```
pub type Result<T> = std::result::Result<T, EngineError>;

/// An engine error.
///
/// ```
/// use windlass_engine::EngineError;
///
/// fn is_user_error(error: &EngineError) -> bool {
///     matches!(error, EngineError::Problem(_))
/// }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The user's input cannot be served.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The store failed.
    #[error("{0}")]
    Store(StoreError),
    /// The user's database failed.
    #[error("{0}")]
    Data(ConnectorError),
    /// The step could not work a batch.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Dead letters could not be written; names the items.
    #[error("{0}")]
    DeadLetters(String),
    /// A part or a report could not be written.
    #[cfg(feature = "export")]
    #[error("{0}")]
    Parts(Arc<windlass_export::Error>),
}

impl EngineError {
    /// Whether a lease was lost: another process has the chunk or segment, or it has ended.
    pub(crate) fn is_lease_lost(&self) -> bool {
        matches!(
            self,
            EngineError::Store(StoreError::LeaseLost)
                | EngineError::Data(ConnectorError::LeaseLost)
        )
    }

    /// Whether trying again can help.
    pub fn kind(&self) -> ErrorKind {
        match self {
            EngineError::Problem(_) => ErrorKind::Permanent,
            EngineError::Store(StoreError::Database(error)) => error.class.kind(),
            EngineError::Store(_) | EngineError::Step(_) | EngineError::DeadLetters(_) => {
                ErrorKind::Transient
            }
            EngineError::Data(error) => {
                error.class().map_or(ErrorKind::Transient, ErrorClass::kind)
            }
            #[cfg(feature = "export")]
            EngineError::Parts(error) => match error.kind() {
                ErrorKind::Unavailable => ErrorKind::Unavailable,
                // A full disk, missing privileges or a bad record can be corrected while the chunk is
                // retried.
                ErrorKind::Permanent | ErrorKind::Transient => ErrorKind::Transient,
            },
        }
    }
}

#[cfg(feature = "export")]
impl From<windlass_export::Error> for EngineError {
    fn from(error: windlass_export::Error) -> EngineError {
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

impl From<ConnectorError> for EngineError {
    fn from(error: ConnectorError) -> EngineError {
        match error {
            ConnectorError::Problem(problem) => EngineError::Problem(problem),
            other => EngineError::Data(other),
        }
    }
}
