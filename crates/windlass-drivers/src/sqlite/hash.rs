//! A function that hashes values exactly as SQLite stores them.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Adds `windlass_hash(value, …)` to a connection: the SHA-256 of all values with their types, as hexadecimal
/// text. Two lists of values have the same hash only if SQLite stores them alike: 1 and 1.0, a text and a blob
/// of the same bytes, and texts that a collation considers equal, are different.
pub(super) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("windlass_hash", -1, flags, |context| Ok(hash(context)))
}

fn hash(context: &Context<'_>) -> String {
    let mut hash = Sha256::new();
    for index in 0..context.len() {
        let (kind, integer, bytes): (u8, i64, &[u8]) = match context.get_raw(index) {
            ValueRef::Null => (0, 0, &[]),
            ValueRef::Integer(value) => (1, value, &[]),
            ValueRef::Real(value) => (2, value.to_bits().cast_signed(), &[]),
            ValueRef::Text(text) => (3, text.len() as i64, text),
            ValueRef::Blob(bytes) => (4, bytes.len() as i64, bytes),
        };
        hash.update([kind]);
        hash.update(integer.to_le_bytes());
        hash.update(bytes);
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_stored_differently_have_different_hashes() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection).unwrap();
        let of = |values: &str| -> String {
            let sql = format!("SELECT windlass_hash({values})");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        let different = [
            "NULL",
            "0",
            "''",
            "x''",
            "1",
            "1.0",
            "'1'",
            "x'31'",
            "'a'",
            "'A'",
            "'a', ''",
            "'', 'a'",
            "NULL, NULL",
            "0.1",
            "0.10000000000000002",
            "0.30000000000000004",
            "0.3",
            "CAST(x'ff' AS TEXT)",
            "x'ff'",
        ];
        let mut hashes: Vec<String> = different.iter().map(|values| of(values)).collect();
        assert_eq!(hashes[0].len(), 64);
        assert_eq!(of("1, 'a', NULL"), of("1, 'a', NULL"));
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), different.len());
    }
}
