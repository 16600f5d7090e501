//! What can go wrong in the store.

use windlass_core::Problem;

/// The result of a call to the store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A store error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store's database failed.
    #[error("the store: {0}")]
    Database(#[from] windlass_drivers::Error),
    /// The caller asked for something that cannot be: no such job, an illegal move, an
    /// idempotency key used for another request.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// A row holds what this version cannot read.
    #[error("the store holds something unreadable: {0}")]
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
