//! Classifies SQLite's errors by result code.

use rusqlite::{ErrorCode, ffi};

use crate::{Error, ErrorClass};

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            E::SqliteFailure(failure, message) => {
                let message = message.unwrap_or_else(|| failure.to_string());
                from_failure(failure, message)
            }
            // Its text would repeat the whole statement.
            E::SqlInputError { error, msg, .. } => from_failure(error, msg),
            other => Error::new(class_without_code(&other), other.to_string()),
        }
    }
}

fn from_failure(failure: ffi::Error, message: String) -> Error {
    Error { class: class_of(failure, &message), code: Some(name_of(failure)), message }
}

fn class_of(failure: ffi::Error, message: &str) -> ErrorClass {
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::SchemaChanged
        | ErrorCode::OperationInterrupted
        | ErrorCode::FileLockingProtocolFailed => ErrorClass::Retry,
        ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
            ErrorClass::Data
        }
        ErrorCode::DiskFull => ErrorClass::Full,
        ErrorCode::SystemIoFailure if message.contains("full") => ErrorClass::Full,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => ErrorClass::ReadOnly,
        ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            ErrorClass::Connection
        }
        // File size limits, quotas and failing disks report this code. It may be temporary, but must not
        // be retried without a limit.
        ErrorCode::SystemIoFailure => ErrorClass::Other,
        ErrorCode::AuthorizationForStatementDenied => ErrorClass::Permission,
        // SQLite uses one code for wrong SQL and for values that its functions refuse.
        ErrorCode::Unknown if REFUSED_VALUES.iter().any(|text| message.contains(text)) => {
            ErrorClass::Data
        }
        ErrorCode::Unknown | ErrorCode::ParameterOutOfRange => ErrorClass::Definition,
        _ => ErrorClass::Other,
    }
}

const REFUSED_VALUES: [&str; 3] =
    ["malformed JSON", "integer overflow", "JSON cannot hold BLOB values"];

fn class_without_code(error: &rusqlite::Error) -> ErrorClass {
    use rusqlite::Error as E;
    match error {
        E::FromSqlConversionFailure(..)
        | E::ToSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..)
        | E::NulError(..) => ErrorClass::Data,
        E::InvalidColumnIndex(..)
        | E::InvalidColumnName(..)
        | E::InvalidParameterCount(..)
        | E::InvalidParameterName(..)
        | E::InvalidPath(..)
        | E::MultipleStatement => ErrorClass::Definition,
        _ => ErrorClass::Other,
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
    fn failing_statements_are_classified() {
        for (sql, class, code) in [
            ("INSERT INTO t VALUES (2, 'a')", ErrorClass::Data, "SQLITE_CONSTRAINT_UNIQUE"),
            ("INSERT INTO t VALUES (2, NULL)", ErrorClass::Data, "SQLITE_CONSTRAINT_NOTNULL"),
            ("INSERT INTO t VALUES (2, 'b')", ErrorClass::Data, "SQLITE_CONSTRAINT_TRIGGER"),
            ("INSERT INTO t VALUES ('x', 'c')", ErrorClass::Data, "SQLITE_MISMATCH"),
            ("SELECT json('{')", ErrorClass::Data, "SQLITE_ERROR"),
            ("SELECT * FROM missing", ErrorClass::Definition, "SQLITE_ERROR"),
            ("SELEC 1", ErrorClass::Definition, "SQLITE_ERROR"),
            ("PRAGMA query_only = ON; DELETE FROM t", ErrorClass::ReadOnly, "SQLITE_READONLY"),
        ] {
            let error = failure(sql);
            assert_eq!((error.class, error.code.as_deref()), (class, Some(code)), "{sql}: {error}");
        }
        assert!(!failure("SELECT * FROM missing").message.contains("SELECT"));
    }

    #[test]
    fn result_codes_are_classified() {
        for (code, class) in [
            (ffi::SQLITE_BUSY, ErrorClass::Retry),
            (ffi::SQLITE_LOCKED, ErrorClass::Retry),
            (ffi::SQLITE_FULL, ErrorClass::Full),
            (ffi::SQLITE_READONLY, ErrorClass::ReadOnly),
            (ffi::SQLITE_PERM, ErrorClass::ReadOnly),
            (ffi::SQLITE_CANTOPEN, ErrorClass::Connection),
            (ffi::SQLITE_NOTADB, ErrorClass::Connection),
            (ffi::SQLITE_CORRUPT, ErrorClass::Connection),
            (ffi::SQLITE_IOERR, ErrorClass::Other),
            (ffi::SQLITE_TOOBIG, ErrorClass::Data),
            (ffi::SQLITE_NOMEM, ErrorClass::Other),
        ] {
            assert_eq!(class_of(ffi::Error::new(code), ""), class, "{code}");
        }
        assert_eq!(
            class_of(ffi::Error::new(ffi::SQLITE_IOERR), "the disk is full"),
            ErrorClass::Full
        );
    }
}
