//! PostgreSQL's errors, by SQLSTATE where the server gave one.

use std::{error::Error as _, io};

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::DbError;

use crate::{Class, Error};

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
                Class::Retry,
                "no database connection became free in time: all of them are in use",
            ),
            PoolError::Timeout(_) => Error::new(
                Class::Connection,
                "the database did not answer in time to a new connection",
            ),
            // The others speak of the pool alone, so they hold no secret.
            other => Error::new(Class::Other, other.to_string()),
        }
    }
}

fn class_of(sqlstate: &str) -> Class {
    match sqlstate {
        "53100" => return Class::Full,
        // Too many connections: there is none to be had, as if the server were down.
        "53300" => return Class::Connection,
        "57014" | "25P03" | "25P04" => return Class::Retry,
        "42501" => return Class::Permission,
        "25006" => return Class::ReadOnly,
        "P0001" => return Class::Data,
        _ => {}
    }
    match sqlstate.get(..2).unwrap_or_default() {
        "08" => Class::Connection,
        "57" if sqlstate.starts_with("57P") => Class::Connection,
        "40" | "53" | "55" => Class::Retry,
        "22" | "23" | "44" => Class::Data,
        // An unknown database or schema is a matter of definition as an unknown table is.
        "42" | "0A" | "3D" | "3F" => Class::Definition,
        // A login that was refused will be refused again.
        "28" => Class::Permission,
        _ => Class::Other,
    }
}

/// Errors of the client carry no public kind, so the cause and then the text must tell them apart.
fn class_without_code(error: &tokio_postgres::Error) -> Class {
    if error.is_closed() {
        return Class::Connection;
    }
    if let Some(io) = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) {
        // The client reports a value that it cannot encode as invalid input.
        return if io.kind() == io::ErrorKind::InvalidInput {
            Class::Data
        } else {
            Class::Connection
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
        Class::Connection
    } else if starts(&["authentication"]) {
        Class::Permission
    } else if starts(&["error serializing", "error encoding"]) {
        Class::Data
    } else if starts(&["expected", "invalid"]) {
        Class::Definition
    } else {
        Class::Other
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
    fn sqlstates_have_their_class() {
        for (sqlstate, class) in [
            ("08006", Class::Connection),
            ("57P01", Class::Connection),
            ("57P03", Class::Connection),
            ("57014", Class::Retry),
            ("40001", Class::Retry),
            ("40P01", Class::Retry),
            ("53300", Class::Connection),
            ("53100", Class::Full),
            ("55P03", Class::Retry),
            ("25P03", Class::Retry),
            ("25P04", Class::Retry),
            ("22P02", Class::Data),
            ("23505", Class::Data),
            ("44000", Class::Data),
            ("P0001", Class::Data),
            ("42501", Class::Permission),
            ("28P01", Class::Permission),
            ("42P01", Class::Definition),
            ("0A000", Class::Definition),
            ("3D000", Class::Definition),
            ("25006", Class::ReadOnly),
            ("25P02", Class::Other),
            ("XX000", Class::Other),
            ("", Class::Other),
        ] {
            assert_eq!(class_of(sqlstate), class, "{sqlstate}");
        }
    }

    #[test]
    fn the_code_follows_the_message() {
        let error =
            Error { code: Some("23505".to_owned()), ..Error::new(Class::Data, "duplicate") };
        assert_eq!(error.to_string(), "duplicate (23505)");
        assert_eq!(Error::new(Class::Other, "odd").to_string(), "odd");
    }
}
