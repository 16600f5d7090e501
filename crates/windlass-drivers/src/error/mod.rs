//! Errors of databases, classified by what a caller can do about them.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt;
use windlass_core::ErrorKind;

/// An error of any database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What a caller may do about it.
    pub class: ErrorClass,
    /// The database's code: an SQLSTATE, a name such as `SQLITE_BUSY`, a number of MySQL, or the name of an
    /// AWS exception.
    pub code: Option<String>,
    /// The message. It never contains a URL or a password.
    pub message: String,
}

/// What a caller may do about an error.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The connection is lost and the outcome unknown: try again on a new one.
    Connection,
    /// The request is valid but failed this time: roll back and try again.
    Retry,
    /// The database is throttling, and nothing was done: try again later, without a limit.
    Busy,
    /// A value was refused. The same value will always be refused.
    Data,
    /// A table or a column is missing, or a setting or the SQL is wrong.
    Definition,
    /// The database is read-only.
    ReadOnly,
    /// No space is left.
    Full,
    /// The user lacks a privilege, or could not log in.
    Permission,
    /// Anything else.
    Other,
}

impl Error {
    /// The error of a URL whose database this build leaves out: it names the cargo feature to add.
    pub fn missing_feature(database: &str, feature: &str) -> Self {
        let message = format!(
            "this build has no support for {database}; build it with the cargo feature `{feature}`"
        );
        Error::new(ErrorClass::Definition, message)
    }

    /// Whether the database is down, busy, or refused the statement only this time, so that the error tells
    /// nothing about the statement.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.class, ErrorClass::Connection | ErrorClass::Retry | ErrorClass::Busy)
    }

    /// The error of a connection that could not be made to this server, with a hint about its URL. The
    /// description has no password.
    pub(crate) fn connecting(self, server: &str, hint: &str) -> Self {
        Error { message: format!("{CANNOT_CONNECT}{server}: {}{hint}", self.message), ..self }
    }

    /// Whether the server cannot be reached, or refused the login.
    pub fn is_connect_failure(&self) -> bool {
        self.class == ErrorClass::Connection || self.message.starts_with(CANNOT_CONNECT)
    }

    /// An error without a code of the database.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Error { class, code: None, message: message.into() }
    }
}

/// The beginning of the message of every connection that could not be made.
const CANNOT_CONNECT: &str = "cannot connect to ";

impl ErrorClass {
    /// Whether trying again can help.
    pub fn kind(self) -> ErrorKind {
        match self {
            ErrorClass::Connection | ErrorClass::Busy => ErrorKind::Unavailable,
            ErrorClass::Definition | ErrorClass::Permission | ErrorClass::ReadOnly => {
                ErrorKind::Permanent
            }
            ErrorClass::Retry | ErrorClass::Data | ErrorClass::Full | ErrorClass::Other => {
                ErrorKind::Transient
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}
