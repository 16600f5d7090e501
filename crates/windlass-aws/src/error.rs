//! What may go wrong outside of single items.

use windlass_core::Problem;

/// Why something could not be done at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for, or how it is configured, is not right.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// AWS did not do what was asked.
    #[error("{doing}: {error}")]
    Aws {
        /// What was being done.
        doing: String,
        /// What AWS said.
        error: windlass_drivers::Error,
    },
    /// The records could not be reached, or not be read.
    #[error("{doing}: {error}")]
    Data {
        /// What was being done.
        doing: String,
        /// What went wrong.
        error: windlass_connectors::ConnectorError,
    },
}

/// The result of what may go wrong.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// AWS refused something, or could not be reached.
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
