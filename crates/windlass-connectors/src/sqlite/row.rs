//! Converts rows of SQLite by their storage class.

use super::failed;
use crate::sql::Sql;
use crate::{ConnectorError, Ledger, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use windlass_core::problem::{Code, Problem};
use windlass_core::{ChunkId, Counts, Cursor, Key, Value};

/// One column of a row as a value.
pub(super) fn value(row: &Row<'_>, index: usize) -> Result<Value> {
    Ok(match row.get_ref(index).map_err(failed)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => Value::Float(value),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            // SQLite does not validate text.
            Err(_) => Value::Bytes(text.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    })
}

/// One key column of a row. A text that is not UTF-8 would be bound as bytes, which sort after all texts,
/// so the records after it would never be processed.
pub(super) fn key_value(row: &Row<'_>, index: usize) -> Result<Value> {
    if let ValueRef::Text(text) = row.get_ref(index).map_err(failed)?
        && std::str::from_utf8(text).is_err()
    {
        let name = row.as_ref().column_name(index).map_err(failed)?;
        let detail = format!(
            "`{name}` has the text x'{}', which is not UTF-8 and cannot be a key; correct the row or \
             name another key",
            hex::encode(text)
        );
        return Err(Problem::field(Code::Source, "source.key", detail).into());
    }
    value(row, index)
}

/// The first columns of a row as values.
pub(super) fn values(row: &Row<'_>, count: usize) -> Result<Vec<Value>> {
    (0..count).map(|index| value(row, index)).collect()
}

/// Runs a statement and calls `read` with each row until it returns false.
pub(super) fn each(
    connection: &Connection,
    sql: &Sql<'_>,
    mut read: impl FnMut(&Row<'_>) -> Result<bool>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(&sql.text).map_err(failed)?;
    let mut rows = statement.query(rusqlite::params_from_iter(sql.bound())).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        if !read(row)? {
            break;
        }
    }
    Ok(())
}

/// The keys of a statement that selects them as its first columns.
pub(super) fn keys(connection: &Connection, sql: &Sql<'_>, count: usize) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    each(connection, sql, |row| {
        keys.push(Key((0..count).map(|index| key_value(row, index)).collect::<Result<_>>()?));
        Ok(true)
    })?;
    Ok(keys)
}

/// The one number that a statement returns.
pub(super) fn number(connection: &Connection, sql: &Sql<'_>) -> Result<i64> {
    let mut number = 0;
    each(connection, sql, |row| {
        number = row.get(0).map_err(failed)?;
        Ok(false)
    })?;
    Ok(number)
}

/// The numbers of the only row of a query with this many columns.
pub(super) fn numbers(connection: &Connection, sql: &Sql<'_>, columns: usize) -> Result<Vec<i64>> {
    let mut numbers = Vec::new();
    each(connection, sql, |row| {
        numbers = (0..columns).map(|n| row.get(n).map_err(failed)).collect::<Result<_>>()?;
        Ok(false)
    })?;
    Ok(numbers)
}

/// Runs a statement and returns how many rows it changed. Ignores rows that it returns.
pub(super) fn execute(connection: &Connection, sql: &Sql<'_>) -> Result<i64> {
    let mut statement = connection.prepare_cached(&sql.text).map_err(failed)?;
    let mut rows = statement.query(rusqlite::params_from_iter(sql.bound())).map_err(failed)?;
    while rows.next().map_err(failed)?.is_some() {}
    drop(rows);
    Ok(if statement.readonly() { 0 } else { connection.changes() as i64 })
}

/// A row of the ledger, after the chunk's own columns.
pub(super) fn ledger(row: &Row<'_>, chunk: ChunkId) -> Result<Ledger> {
    let number = |index| row.get::<_, i64>(index).map_err(failed);
    let cursor: String = row.get(2).map_err(failed)?;
    Ok(Ledger {
        chunk,
        epoch: number(0)?,
        nonce: number(9)?,
        commits: number(1)?,
        cursor: Cursor::from_text(&cursor)?,
        counts: Counts {
            read: number(3)?,
            processed: number(4)?,
            skipped: number(5)?,
            dead: number(6)?,
            conflicts: number(7)?,
        },
        stalls: u32::try_from(number(8)?)
            .map_err(|error| ConnectorError::Unreadable(error.to_string()))?,
    })
}
