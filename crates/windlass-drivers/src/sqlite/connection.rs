//! Opens and configures connections.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use super::{busy, cell, file, hash};
use crate::{Error, ErrorClass};

/// Opens the writing connection.
pub(super) fn writer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    busy::begin(path);
    let explain = |error: rusqlite::Error| file::explain(path, error.into());
    let mut connection = Connection::open_with_flags(path, flags).map_err(explain)?;
    // SQLite silently opens a file read-only if it is not writable.
    if connection.is_readonly(MAIN_DB).map_err(explain)? {
        return Err(file::read_only(path));
    }
    set_up(&mut connection).map_err(explain)?;
    let mode = keep_a_log(&connection).map_err(explain)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(Error::new(
            ErrorClass::Definition,
            format!(
                "{} cannot be switched to a write-ahead log (it stays in mode {mode}); \
                 put it on a local file system",
                path.display()
            ),
        ));
    }
    // A commit returns after it is on disk. With less, a power failure could undo it.
    connection.pragma_update(None, "synchronous", "FULL").map_err(explain)?;
    Ok(connection)
}

/// Switches to a write-ahead log and returns the new mode. While another process switches the same file, SQLite
/// fails at once, regardless of the busy timeout.
fn keep_a_log(connection: &Connection) -> rusqlite::Result<String> {
    let mut tries = 0;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && busy::wait(tries) =>
            {
                tries += 1;
            }
            switched => return switched,
        }
    }
}

/// Opens a reading connection. The file is opened for writing, since a reader of a write-ahead log must be able to
/// write the log's index.
pub(super) fn reader(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let explain = |error: rusqlite::Error| file::explain(path, error.into());
    let mut connection = Connection::open_with_flags(path, flags).map_err(explain)?;
    set_up(&mut connection).map_err(explain)?;
    connection.pragma_update(None, "query_only", "ON").map_err(explain)?;
    Ok(connection)
}

pub(super) fn set_up(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(busy::wait))?;
    cell::register(connection)?;
    hash::register(connection)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Negative means kibibytes.
    connection.pragma_update(None, "cache_size", -16_000)
}
