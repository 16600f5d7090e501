//! What went wrong, in the terms in which a caller decides what to do next.

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

/// An error of a database, the same shape for every kind of database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// What a caller may do about it.
    pub class: Class,
    /// The database's own code: an SQLSTATE, a name such as `SQLITE_BUSY`, MySQL's number, or
    /// the name of AWS's exception.
    pub code: Option<String>,
    /// What happened; never a URL, never a password.
    pub message: String,
}

/// What a caller may do about an error.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Class {
    /// The connection is gone and the outcome unknown: try again on a new one.
    Connection,
    /// Nothing is wrong with the request: roll back and try it again.
    Retry,
    /// The database asks for patience, and nothing was done: try again later, for as long as it takes.
    Busy,
    /// A value was refused: another value would pass, the same one never will.
    Data,
    /// A table, a column, a setting or the SQL is not what the request takes it to be.
    Definition,
    /// The database cannot be written.
    ReadOnly,
    /// No space is left.
    Full,
    /// The user may not do this, or could not log in.
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
        Error::new(Class::Definition, message)
    }

    /// An error that has no code of the database.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Error { class, code: None, message: message.into() }
    }
}

impl Class {
    /// Whether trying again can help.
    pub fn kind(self) -> ErrorKind {
        match self {
            Class::Connection | Class::Busy => ErrorKind::Unavailable,
            Class::Definition | Class::Permission | Class::ReadOnly => ErrorKind::Permanent,
            Class::Retry | Class::Data | Class::Full | Class::Other => ErrorKind::Transient,
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
