//! The error type of the store.

use windlass_core::Problem;

/// The result of a call to the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// An error of the store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store's database returned an error or is unavailable.
    #[error("store: {0}")]
    Database(#[from] windlass_drivers::Error),
    /// The request cannot be served: the job does not exist, its status does not allow the command,
    /// or the idempotency key was used for another request.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The lease was lost: it expired, or the chunk or segment was leased again or has ended. The
    /// call changed nothing, and its caller must stop working the chunk or segment.
    #[error("lease lost")]
    LeaseLost,
    /// A row contains a value that this version cannot read.
    #[error("the store contains a value that this version cannot read: {0}")]
    Unreadable(String),
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> StoreError {
        StoreError::Unreadable(error.to_string())
    }
}

impl From<windlass_core::state::UnknownStatus> for StoreError {
    fn from(error: windlass_core::state::UnknownStatus) -> StoreError {
        StoreError::Unreadable(error.to_string())
    }
}
