//! The store in a SQLite file. `postgres/` has the same files for the same things.

mod advance;
mod alerts;
mod control;
mod dependents;
mod digest;
mod lease;
mod letters;
mod load;
mod look;
mod migrate;
mod parts;
mod prune;
mod restore;
mod schedule;
mod steer;
mod submit;
mod transaction;
mod wait;
mod work;

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;
use windlass_core::{AlertKind, ChunkStatus, Delivery, Job, JobId, JobStatus, LetterStatus};
use windlass_db::Sqlite;

use self::wait::Eye;
use crate::changes::Changes;
use crate::door::door;
use crate::rules::{Ending, Steering};
use crate::{
    Alert, AlertFilter, Beat, Capabilities, Cell, ChunkRow, ClaimedChunk, ClaimedSegment, Control,
    DeadLetter, Hour, JobFilter, Kept, Lease, LetterFilter, LetterGroup, Linked, MeetingRow,
    NewAlert, NewJob, NewLetter, NewPart, Occurrence, Owner, Pace, Page, PartRow, Pinned, Progress,
    RedriveRoot, Result, ScheduleRow, SegmentLease, SegmentRow, Standing, Stats, Submitted, Took,
    Trigger, Unworked, WorkerRow,
};

/// A store in a SQLite file, shared by the processes of one machine. Everything that changes it
/// runs alone, inside BEGIN IMMEDIATE, so that no statement here needs a lock of its own.
pub(crate) struct SqliteStore {
    database: Sqlite,
    changes: Changes,
    eye: Eye,
}

impl SqliteStore {
    pub(crate) fn new(database: Sqlite) -> SqliteStore {
        let eye = Eye::new(database.path());
        SqliteStore { database, changes: Changes::new(), eye }
    }
}

door!(SqliteStore);

/// A statement whose condition on a parameter is plain where the parameter is given. SQLite plans
/// before it knows the values, and would use no index for `?5 IS NULL OR submitter = ?5`.
fn given<T>(sql: &str, value: &Option<T>, parameter: &str) -> String {
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
