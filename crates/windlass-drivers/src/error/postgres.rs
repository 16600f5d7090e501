//! Classifies PostgreSQL's errors by SQLSTATE, or by message for errors of the client.

use std::{error::Error as _, io};

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::DbError;

use crate::{Error, ErrorClass};

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refused) => Error {
                class: class_of(refused.code().code()),
                code: Some(refused.code().code().to_owned()),
                message: with_details(refused),
            },
            None => Error::new(class_without_code(&error), with_causes(&error)),
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(TimeoutType::Wait) => Error::new(
                ErrorClass::Retry,
                "timed out waiting for a free database connection: all of them are in use",
            ),
            PoolError::Timeout(_) => {
                Error::new(ErrorClass::Connection, "timed out connecting to the database")
            }
            // The other errors are about the pool itself and contain no secret.
            other => Error::new(ErrorClass::Other, other.to_string()),
        }
    }
}

fn class_of(sqlstate: &str) -> ErrorClass {
    match sqlstate {
        "53100" => return ErrorClass::Full,
        // Too many connections: treated like a server that is down.
        "53300" => return ErrorClass::Connection,
        "57014" | "25P03" | "25P04" => return ErrorClass::Retry,
        "42501" => return ErrorClass::Permission,
        "25006" => return ErrorClass::ReadOnly,
        "P0001" => return ErrorClass::Data,
        _ => {}
    }
    match sqlstate.get(..2).unwrap_or_default() {
        "08" => ErrorClass::Connection,
        "57" if sqlstate.starts_with("57P") => ErrorClass::Connection,
        "40" | "53" | "55" => ErrorClass::Retry,
        "22" | "23" | "44" => ErrorClass::Data,
        // An unknown database or schema is classified like an unknown table.
        "42" | "0A" | "3D" | "3F" => ErrorClass::Definition,
        // A refused login will be refused again.
        "28" => ErrorClass::Permission,
        _ => ErrorClass::Other,
    }
}

/// The client's errors have no public kind, so the cause and the text distinguish them.
fn class_without_code(error: &tokio_postgres::Error) -> ErrorClass {
    if error.is_closed() {
        return ErrorClass::Connection;
    }
    if let Some(io) = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        // The client reports a value that it cannot encode as invalid input.
        return if io.kind() == io::ErrorKind::InvalidInput {
            ErrorClass::Data
        } else {
            ErrorClass::Connection
        };
    }
    let text = error.to_string();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    if starts(&[
        "timeout",
        "unexpected message",
        "error communicating",
        "error connecting",
        "error performing",
    ]) {
        ErrorClass::Connection
    } else if starts(&["authentication"]) {
        ErrorClass::Permission
    } else if starts(&["error serializing", "error encoding"]) {
        ErrorClass::Data
    } else if starts(&["expected", "invalid"]) {
        ErrorClass::Definition
    } else {
        ErrorClass::Other
    }
}

fn with_details(error: &DbError) -> String {
    let mut message = error.message().to_owned();
    if let Some(detail) = error.detail() {
        message.push_str(". DETAIL: ");
        message.push_str(detail);
    }
    if let Some(hint) = error.hint() {
        message.push_str(". HINT: ");
        message.push_str(hint);
    }
    message
}

fn with_causes(error: &tokio_postgres::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_are_classified() {
        for (sqlstate, class) in [
            ("08006", ErrorClass::Connection),
            ("57P01", ErrorClass::Connection),
            ("57P03", ErrorClass::Connection),
            ("57014", ErrorClass::Retry),
            ("40001", ErrorClass::Retry),
            ("40P01", ErrorClass::Retry),
            ("53300", ErrorClass::Connection),
            ("53100", ErrorClass::Full),
            ("55P03", ErrorClass::Retry),
            ("25P03", ErrorClass::Retry),
            ("25P04", ErrorClass::Retry),
            ("22P02", ErrorClass::Data),
            ("23505", ErrorClass::Data),
            ("44000", ErrorClass::Data),
            ("P0001", ErrorClass::Data),
            ("42501", ErrorClass::Permission),
            ("28P01", ErrorClass::Permission),
            ("42P01", ErrorClass::Definition),
            ("0A000", ErrorClass::Definition),
            ("3D000", ErrorClass::Definition),
            ("25006", ErrorClass::ReadOnly),
            ("25P02", ErrorClass::Other),
            ("XX000", ErrorClass::Other),
            ("", ErrorClass::Other),
        ] {
            assert_eq!(class_of(sqlstate), class, "{sqlstate}");
        }
    }

    #[test]
    fn an_error_is_displayed_with_its_code() {
        let error =
            Error { code: Some("23505".to_owned()), ..Error::new(ErrorClass::Data, "duplicate") };
        assert_eq!(error.to_string(), "duplicate (23505)");
        assert_eq!(Error::new(ErrorClass::Other, "odd").to_string(), "odd");
    }
}
