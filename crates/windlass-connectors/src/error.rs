//! The errors of connectors.

use windlass_core::Problem;
use windlass_drivers::ErrorClass;

/// The result of a call to a connector.
pub type Result<T> = std::result::Result<T, ConnectorError>;

/// An error of a connector.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The database failed, or refused the statement.
    #[error(transparent)]
    Database(#[from] windlass_drivers::Error),
    /// The ledger row was changed under another lease. Nothing was committed.
    #[error("the lease is lost: the ledger row was changed under another lease")]
    LeaseLost,
    /// The source does not fit the job type.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The read snapshot of the job cannot be used any more, or not on this server.
    #[error("the job's read snapshot cannot be used: {0}")]
    SnapshotLost(String),
    /// The source's table was rewritten since the job's read snapshot was taken, which makes the snapshot useless.
    #[error(
        "the job's read snapshot cannot be used: the table was rewritten since it was taken (TRUNCATE, VACUUM FULL, \
         CLUSTER or ALTER TABLE), so its rows are in other blocks or gone"
    )]
    TableRewritten,
    /// The ledger has a value that this version cannot read.
    #[error("the ledger has an unreadable value: {0}")]
    Unreadable(String),
}

impl ConnectorError {
    /// The class of a database error. `None` for other errors.
    pub fn class(&self) -> Option<ErrorClass> {
        match self {
            ConnectorError::Database(error) => Some(error.class),
            _ => None,
        }
    }

    /// Whether the same call may succeed later, so that its failure tells nothing about privileges or
    /// the schema.
    pub(crate) fn is_retryable(&self) -> bool {
        use ErrorClass::{Busy, Connection, Full, Retry};
        matches!(self.class(), Some(Connection | Retry | Busy | Full))
    }
}

impl From<serde_json::Error> for ConnectorError {
    fn from(error: serde_json::Error) -> ConnectorError {
        ConnectorError::Unreadable(error.to_string())
    }
}
