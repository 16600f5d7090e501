//! The store in a SQLite file. Each file implements the trait of the same name in `traits/`.

mod advance;
mod alerts;
mod cancellation;
mod changes;
mod chunks;
mod connection_shares;
mod controls;
mod dead_letters;
mod dependencies;
mod history;
mod jobs;
mod leases;
mod lifecycle;
mod parts;
mod read_snapshots;
mod retention;
mod schedules;
mod schema;
mod segments;
mod stats;
mod transaction;
mod workers;

use std::sync::Arc;

use windlass_drivers::Sqlite;

use self::changes::ChangePoller;

/// A store in a SQLite file, shared by the processes of one machine. Every change runs inside BEGIN
/// IMMEDIATE, which excludes other writers, so no statement needs a lock of its own.
pub(crate) struct SqliteStore {
    database: Sqlite,
    poller: Arc<ChangePoller>,
}

impl SqliteStore {
    pub(crate) fn new(database: Sqlite) -> SqliteStore {
        let poller = Arc::new(ChangePoller::new(database.clone()));
        SqliteStore { database, poller }
    }
}

/// Removes the NULL check of a parameter that is given. SQLite plans a statement before it knows the
/// values, and uses no index for `?5 IS NULL OR submitter = ?5`.
fn without_null_check<T>(sql: &str, value: &Option<T>, parameter: &str) -> String {
    match value {
        Some(_) => sql.replace(&format!("{parameter} IS NULL OR "), ""),
        None => sql.to_owned(),
    }
}

/// Replaces the parameters of PostgreSQL by those of SQLite: `$1` by `?1`.
const fn numbered<const LENGTH: usize>(sql: &str) -> [u8; LENGTH] {
    let mut converted = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        let byte = sql.as_bytes()[at];
        let is_parameter = byte == b'$' && sql.as_bytes()[at + 1].is_ascii_digit();
        converted[at] = if is_parameter { b'?' } else { byte };
        at += 1;
    }
    converted
}

/// The text of a statement in `queries/sqlite`, or in `queries/shared` with converted parameters.
macro_rules! sql {
    (shared $name:literal) => {{
        const TEXT: &str =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/shared/", $name, ".sql"));
        const CONVERTED: [u8; TEXT.len()] = crate::sqlite::numbered(TEXT);
        const SQL: &str = match std::str::from_utf8(&CONVERTED) {
            Ok(sql) => sql,
            Err(_) => panic!("not UTF-8"),
        };
        SQL
    }};
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/sqlite/", $name, ".sql"))
    };
    ($name:literal, $rest:literal) => {
        concat!(sql!($name), sql!($rest))
    };
}

use sql;
