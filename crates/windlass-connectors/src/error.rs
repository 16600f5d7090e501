//! What can go wrong at the user's data.

use windlass_core::Problem;
use windlass_drivers::Class;

/// The result of a call to a connector.
pub type Result<T> = std::result::Result<T, DataError>;

/// A connector's error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DataError {
    /// The database failed, or refused the statement.
    #[error(transparent)]
    Database(#[from] windlass_drivers::Error),
    /// The ledger has moved on: somebody else holds the chunk. Nothing was committed.
    #[error("the lease is lost: the ledger has moved on")]
    LeaseLost,
    /// The source does not serve the job type.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The ledger holds what this version cannot read.
    #[error("the ledger holds something unreadable: {0}")]
    Unreadable(String),
}

impl DataError {
    /// The database's class of error, when it was the database.
    pub fn class(&self) -> Option<Class> {
        match self {
            DataError::Database(error) => Some(error.class),
            _ => None,
        }
    }
}

impl From<serde_json::Error> for DataError {
    fn from(error: serde_json::Error) -> DataError {
        DataError::Unreadable(error.to_string())
    }
}
