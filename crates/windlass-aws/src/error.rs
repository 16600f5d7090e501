//! Errors that concern more than a single item.

use windlass_core::Problem;

/// An error of a whole operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request or the configuration is invalid.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// An AWS request failed.
    #[error("{doing}: {error}")]
    Aws {
        /// The operation that failed.
        doing: String,
        /// AWS's error.
        error: windlass_drivers::Error,
    },
    /// The records could not be read.
    #[error("{doing}: {error}")]
    Data {
        /// The operation that failed.
        doing: String,
        /// The cause.
        error: windlass_connectors::ConnectorError,
    },
    /// A job with a store could not be submitted, worked or read.
    #[error(transparent)]
    Engine(#[from] windlass_engine::EngineError),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An AWS request that was refused or could not be sent.
    pub(crate) fn aws<E>(doing: impl Into<String>) -> impl FnOnce(E) -> Error
    where
        windlass_drivers::Error: From<E>,
    {
        let doing = doing.into();
        move |error| Error::Aws { doing, error: error.into() }
    }

    pub(crate) fn data(
        doing: impl Into<String>,
    ) -> impl FnOnce(windlass_connectors::ConnectorError) -> Error {
        let doing = doing.into();
        move |error| Error::Data { doing, error }
    }
}
