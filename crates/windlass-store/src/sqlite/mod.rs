//! The store in a SQLite file. Each file implements the trait of the same name in `traits/`.

mod advance;
mod alerts;
mod cancellation;
mod changes;
mod chunks;
mod controls;
mod dead_letters;
mod dependencies;
mod history;
mod jobs;
mod leases;
mod lifecycle;
mod parts;
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
        let poller = Arc::new(ChangePoller::new(database.path()));
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

/// The text of a statement in `queries/sqlite`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/queries/sqlite/", $name, ".sql"))
    };
    ($name:literal, $rest:literal) => {
        concat!(sql!($name), sql!($rest))
    };
}

use sql;
