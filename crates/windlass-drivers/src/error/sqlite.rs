//! SQLite's errors, by result code.

use rusqlite::{ErrorCode, ffi};

use crate::{Class, Error};

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            E::SqliteFailure(failure, message) => {
                let message = message.unwrap_or_else(|| failure.to_string());
                from_failure(failure, message)
            }
            // Its own text would repeat the whole statement.
            E::SqlInputError { error, msg, .. } => from_failure(error, msg),
            other => Error::new(class_without_code(&other), other.to_string()),
        }
    }
}

fn from_failure(failure: ffi::Error, message: String) -> Error {
    Error { class: class_of(failure, &message), code: Some(name_of(failure)), message }
}

fn class_of(failure: ffi::Error, message: &str) -> Class {
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::SchemaChanged
        | ErrorCode::OperationInterrupted
        | ErrorCode::FileLockingProtocolFailed => Class::Retry,
        ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => Class::Data,
        ErrorCode::DiskFull => Class::Full,
        ErrorCode::SystemIoFailure if message.contains("full") => Class::Full,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Class::ReadOnly,
        ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            Class::Connection
        }
        // A limit on the file's size or a quota says so, and so does a dying disk: it may pass,
        // but nobody should wait for that for ever.
        ErrorCode::SystemIoFailure => Class::Other,
        ErrorCode::AuthorizationForStatementDenied => Class::Permission,
        // SQLite has one code for wrong SQL and for values its functions refuse.
        ErrorCode::Unknown if REFUSED_VALUES.iter().any(|text| message.contains(text)) => {
            Class::Data
        }
        ErrorCode::Unknown | ErrorCode::ParameterOutOfRange => Class::Definition,
        _ => Class::Other,
    }
}

const REFUSED_VALUES: [&str; 3] =
    ["malformed JSON", "integer overflow", "JSON cannot hold BLOB values"];

fn class_without_code(error: &rusqlite::Error) -> Class {
    use rusqlite::Error as E;
    match error {
        E::FromSqlConversionFailure(..)
        | E::ToSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..)
        | E::NulError(..) => Class::Data,
        E::InvalidColumnIndex(..)
        | E::InvalidColumnName(..)
        | E::InvalidParameterCount(..)
        | E::InvalidParameterName(..)
        | E::InvalidPath(..)
        | E::MultipleStatement => Class::Definition,
        _ => Class::Other,
    }
}

fn name_of(failure: ffi::Error) -> String {
    let extended = match failure.extended_code {
        ffi::SQLITE_CONSTRAINT_CHECK => Some("SQLITE_CONSTRAINT_CHECK"),
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some("SQLITE_CONSTRAINT_FOREIGNKEY"),
        ffi::SQLITE_CONSTRAINT_NOTNULL => Some("SQLITE_CONSTRAINT_NOTNULL"),
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => Some("SQLITE_CONSTRAINT_PRIMARYKEY"),
        ffi::SQLITE_CONSTRAINT_TRIGGER => Some("SQLITE_CONSTRAINT_TRIGGER"),
        ffi::SQLITE_CONSTRAINT_UNIQUE => Some("SQLITE_CONSTRAINT_UNIQUE"),
        ffi::SQLITE_BUSY_SNAPSHOT => Some("SQLITE_BUSY_SNAPSHOT"),
        _ => None,
    };
    let primary = match failure.extended_code & 0xff {
        ffi::SQLITE_ERROR => Some("SQLITE_ERROR"),
        ffi::SQLITE_PERM => Some("SQLITE_PERM"),
        ffi::SQLITE_BUSY => Some("SQLITE_BUSY"),
        ffi::SQLITE_LOCKED => Some("SQLITE_LOCKED"),
        ffi::SQLITE_READONLY => Some("SQLITE_READONLY"),
        ffi::SQLITE_INTERRUPT => Some("SQLITE_INTERRUPT"),
        ffi::SQLITE_IOERR => Some("SQLITE_IOERR"),
        ffi::SQLITE_CORRUPT => Some("SQLITE_CORRUPT"),
        ffi::SQLITE_FULL => Some("SQLITE_FULL"),
        ffi::SQLITE_CANTOPEN => Some("SQLITE_CANTOPEN"),
        ffi::SQLITE_TOOBIG => Some("SQLITE_TOOBIG"),
        ffi::SQLITE_CONSTRAINT => Some("SQLITE_CONSTRAINT"),
        ffi::SQLITE_MISMATCH => Some("SQLITE_MISMATCH"),
        ffi::SQLITE_NOTADB => Some("SQLITE_NOTADB"),
        _ => None,
    };
    match extended.or(primary) {
        Some(name) => name.to_owned(),
        None => format!("SQLite result code {}", failure.extended_code),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn failure(sql: &str) -> Error {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
             INSERT INTO t VALUES (1, 'a');
             CREATE TRIGGER no_b BEFORE INSERT ON t WHEN new.name = 'b'
             BEGIN SELECT RAISE(ABORT, 'no b here'); END;",
        )
        .unwrap();
        conn.execute_batch(sql).unwrap_err().into()
    }

    #[test]
    fn statements_fail_with_their_class() {
        for (sql, class, code) in [
            ("INSERT INTO t VALUES (2, 'a')", Class::Data, "SQLITE_CONSTRAINT_UNIQUE"),
            ("INSERT INTO t VALUES (2, NULL)", Class::Data, "SQLITE_CONSTRAINT_NOTNULL"),
            ("INSERT INTO t VALUES (2, 'b')", Class::Data, "SQLITE_CONSTRAINT_TRIGGER"),
            ("INSERT INTO t VALUES ('x', 'c')", Class::Data, "SQLITE_MISMATCH"),
            ("SELECT json('{')", Class::Data, "SQLITE_ERROR"),
            ("SELECT * FROM missing", Class::Definition, "SQLITE_ERROR"),
            ("SELEC 1", Class::Definition, "SQLITE_ERROR"),
            ("PRAGMA query_only = ON; DELETE FROM t", Class::ReadOnly, "SQLITE_READONLY"),
        ] {
            let error = failure(sql);
            assert_eq!((error.class, error.code.as_deref()), (class, Some(code)), "{sql}: {error}");
        }
        assert!(!failure("SELECT * FROM missing").message.contains("SELECT"));
    }

    #[test]
    fn result_codes_have_their_class() {
        for (code, class) in [
            (ffi::SQLITE_BUSY, Class::Retry),
            (ffi::SQLITE_LOCKED, Class::Retry),
            (ffi::SQLITE_FULL, Class::Full),
            (ffi::SQLITE_READONLY, Class::ReadOnly),
            (ffi::SQLITE_PERM, Class::ReadOnly),
            (ffi::SQLITE_CANTOPEN, Class::Connection),
            (ffi::SQLITE_NOTADB, Class::Connection),
            (ffi::SQLITE_CORRUPT, Class::Connection),
            (ffi::SQLITE_IOERR, Class::Other),
            (ffi::SQLITE_TOOBIG, Class::Data),
            (ffi::SQLITE_NOMEM, Class::Other),
        ] {
            assert_eq!(class_of(ffi::Error::new(code), ""), class, "{code}");
        }
        assert_eq!(class_of(ffi::Error::new(ffi::SQLITE_IOERR), "the disk is full"), Class::Full);
    }
}
